package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/backends/flash"
	"github.com/clefbench/clefbench/backends/model"
	"github.com/clefbench/clefbench/backends/rules"
	"github.com/clefbench/clefbench/backends/strategy"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

func (a *app) rulesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Check, test and compile rules, strategies, matrices and models",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.rulesCheckCommand(), a.rulesTestCommand(), a.rulesDiffCommand(), a.rulesCompileCommand(), a.rulesFmtCommand(), a.rulesSchemaCommand())
	return cmd
}

// same reports whether two names are of one file.
func same(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

// kindOfFile tells what a file is by its top-level fields.
func kindOfFile(root *document.Node) string {
	if root == nil || !root.IsMap() {
		return ""
	}
	m := root.Map()
	has := func(key string) bool { return m.Get(key) != nil }
	switch {
	case has("strategy"):
		return "strategy"
	case has("dimensions") || has("matrix"):
		return "matrix"
	case has("classes") || has("model"):
		return "model"
	case has("rules"):
		return "rules"
	}
	return ""
}

func checkFile(name string, data []byte, schema *decision.Schema) (kind string, ps document.Problems) {
	_, root, err := document.Parse(name, data)
	if root == nil {
		errors.As(err, &ps)
		return "", ps
	}
	switch kind = kindOfFile(root); kind {
	case "rules":
		return kind, rules.Check(name, data, schema)
	case "strategy":
		return kind, strategy.Check(name, data, schema)
	case "matrix":
		return kind, flash.Check(name, data, schema)
	case "model":
		return kind, checkModel(name, data, schema)
	}
	return "", document.Problems{{Pos: root.Pos(),
		Message: "cannot tell what this file is",
		Hint:    "rules files have rules:, strategies have strategy:, matrices have dimensions and matrix, models have model and classes"}}
}

// checkModel also gives the model its directory, for the file of its trees.
func checkModel(name string, data []byte, schema *decision.Schema) document.Problems {
	dir, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return model.Check(name, data, schema)
	}
	defer dir.Close()
	return model.CheckIn(dir.FS(), name, data, schema)
}
