package cedar

import (
	"context"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

// Files never panic, check and compile agree, and what compiles decides.
func FuzzCompile(f *testing.F) {
	for _, dir := range []string{"valid", "invalid"} {
		for _, name := range files(f, dir) {
			mapping, policies := pair(f, name)
			f.Add(mapping, policies)
		}
	}
	f.Add([]byte(edgeMapping), []byte(edgePolicies))
	req := request(f, full())
	f.Fuzz(func(t *testing.T, mapping, policies []byte) {
		if len(mapping)+len(policies) > 1<<14 {
			return
		}
		ps := Check("m.yaml", mapping, "p.cedar", policies)
		e, err := Compile("m.yaml", mapping, "p.cedar", policies, Options{})
		if (err == nil) != (ps.Errors() == 0) {
			t.Fatalf("check finds %v, compile says %v", ps, err)
		}
		if err != nil {
			return
		}
		var out decision.Response
		if err := e.Decide(context.Background(), req, &out); err != nil {
			t.Fatal(err)
		}
		d := out.Decisions[0]
		if d.Status != decision.OK && d.Status != decision.Denied {
			t.Fatalf("%+v", d)
		}
		x, err := e.Explain(context.Background(), req)
		if err != nil || x.Reason != d.Reason || len(x.Skipped) != int(d.Reason.Skipped) {
			t.Fatalf("%+v explains %+v, %v", x, d, err)
		}
	})
}
