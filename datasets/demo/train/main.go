// Command train makes the fitted files of the demo, model.json and matrix.json of each
// scenario, from the training rows of the embedded data. It never looks at a test row.
//
//	go run ./datasets/demo/train -o datasets/demo/backends
//
// The same rows give the same files; `go generate ./datasets` runs it. Rules, strategies
// and the cuts of matrix and model are written by hand and not changed.
package main

import (
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/clefbench/clefbench/datasets"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}

func run(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("train", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("o", "datasets/demo/backends", "directory of the strategies")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, name := range datasets.DemoScenarios() {
		files, err := train(name, datasets.Demo(name))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for file, data := range files {
			if err := os.WriteFile(filepath.Join(*out, name, file), data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// train makes the files of a scenario, by name.
func train(name string, examples iter.Seq2[*datasets.Example, error]) (map[string][]byte, error) {
	rows, err := trainingRows(examples)
	if err != nil {
		return nil, err
	}
	s, err := setUp(name, rows)
	if err != nil {
		return nil, err
	}
	matrix, err := trainMatrix(s, rows)
	if err != nil {
		return nil, err
	}
	model, err := trainModel(s, rows)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"matrix.json": matrix, "model.json": model}, nil
}

// trainingRows is the only place where examples are read.
func trainingRows(examples iter.Seq2[*datasets.Example, error]) ([]*datasets.Example, error) {
	var rows []*datasets.Example
	for ex, err := range examples {
		if err != nil {
			return nil, err
		}
		if ex.Train {
			rows = append(rows, ex)
		}
	}
	return rows, nil
}
