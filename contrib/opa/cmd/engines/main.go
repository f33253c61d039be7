// Engines puts one rule set into all engines, checks that they answer alike, and prints
// what a decision costs in each, as Markdown.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
)

func main() {
	rounds := flag.Int("rounds", 9, "rounds after the warm-up")
	flag.Parse()
	runtime.GOMAXPROCS(1)
	fmt.Printf("%s %s/%s, one processor\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if err := run(os.Stdout, []int{2, 10, 100, 1000}, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, sizes []int, rounds int) error {
	all, err := flashCases()
	if err != nil {
		return err
	}
	for _, n := range sizes {
		cases, err := ruleCases(newRuleset(n))
		if err != nil {
			return err
		}
		all = append(all, cases...)
	}
	measure(all, rounds)
	results(all).write(w, sizes)
	return nil
}
