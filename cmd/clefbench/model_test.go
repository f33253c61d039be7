package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/snapshot"
)

// traffic N FILE writes N decisions as JSON lines: the service blocks at random, so that
// what it chose tells nothing and the labels all.
func traffic(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: traffic N FILE")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	r := rand.New(rand.NewPCG(11, 12))
	var b strings.Builder
	for i := range n {
		action := []string{"allow", "block"}[r.IntN(2)]
		rate := "null"
		if r.IntN(10) > 0 {
			rate = fmt.Sprint(r.NormFloat64())
		}
		fmt.Fprintf(&b, `{"scenario":"edge","action":%q,"keep_prob":%v,"attrs":{"metrics.rate":%s,"env.country":%q,"path":"/p%d"}}`+"\n",
			action, []float64{1, 0.5}[r.IntN(2)], rate, []string{"DE", "FR", "US"}[r.IntN(3)], i)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(b.String()), 0o666))
}

// label DIR attaches labels: block is right with log odds of twice the rate, and 3 more in
// FR. One row in 50 stays without.
func label(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: label DIR")
	}
	r := rand.New(rand.NewPCG(13, 14))
	_, err := datasets.AttachLabels(ts.MkAbs(args[0]), func(s *snapshot.Snapshot) *snapshot.Label {
		rate, _ := s.Attrs.Get("metrics.rate").Number()
		logit := 2*rate - 1
		if s.Attrs.Get("env.country").Str() == "FR" {
			logit += 3
		}
		action, u := "allow", r.Float64()
		if u < 1/(1+math.Exp(-logit)) {
			action = "block"
		}
		if r.IntN(50) == 0 {
			return nil
		}
		return &snapshot.Label{Action: action, Source: "test", Time: s.Time}
	})
	ts.Check(err)
}
