// Peers prints how the recorder and its files compare with their peers, as Markdown.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"

	"github.com/clefbench/clefbench/contrib/peers"
)

func main() {
	rows := flag.Int("rows", 65536, "rows of traffic")
	rounds := flag.Int("rounds", 9, "rounds after the warm-up")
	group := flag.String("group", "all", "handoff, encode, read or all")
	flag.Parse()
	if err := run(*group, *rows, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(group string, rows, rounds int) error {
	traffic := peers.NewTraffic(1).Rows(rows)
	fmt.Printf("%s, %d processors\n", runtime.Version(), runtime.NumCPU())
	for _, g := range []struct {
		name string
		run  func() (*peers.Report, error)
	}{
		{"handoff", func() (*peers.Report, error) { return peers.HandOff(traffic, rounds) }},
		{"encode", func() (*peers.Report, error) { return peers.Encode(traffic, rounds) }},
		{"read", func() (*peers.Report, error) { return peers.Read(traffic, rounds) }},
	} {
		if group != g.name && group != "all" {
			continue
		}
		report, err := g.run()
		if err != nil {
			return err
		}
		if _, err := report.WriteTo(os.Stdout); err != nil {
			return err
		}
	}
	return nil
}
