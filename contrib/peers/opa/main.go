// Opa prints how the recorder's encoding compares with the decision log of Open Policy
// Agent. It is a module of its own, since OPA takes minutes to compile.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/clefbench/clefbench/contrib/peers"
	"github.com/clefbench/clefbench/snapshot"
)

func main() {
	rows := flag.Int("rows", 16384, "rows of traffic")
	rounds := flag.Int("rounds", 5, "rounds after the warm-up")
	flag.Parse()
	report, err := compare(peers.NewTraffic(1).Rows(*rows), *rounds)
	if err == nil {
		_, err = report.WriteTo(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "opa:", err)
		os.Exit(1)
	}
}

func compare(rows []snapshot.Snapshot, rounds int) (*peers.Report, error) {
	inputs, err := parse(rows)
	if err != nil {
		return nil, err
	}
	run := func(limit int64) func() (int64, error) {
		var n int64
		d := newDecisionLog(limit, func(c []byte) error { n += int64(len(c)); return nil })
		return func() (int64, error) {
			start := n
			err := d.add(rows, inputs)
			return n - start, err
		}
	}
	return peers.EncodeReport("Encode, OPA's decision log", rows, rounds, []peers.EncodePeer{
		{Name: "OPA v1.22.4 chunk encoder, 32 KiB chunks (default)", Run: run(defaultLimit), Faster: peers.Goal{AtLeast: 40}},
		{Name: "OPA v1.22.4 chunk encoder, 1 MiB chunks", Run: run(1 << 20)},
	})
}
