package cel

import (
	"context"
	"os"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

// A file never panics, check and compile agree, and what compiles decides.
func FuzzCompile(f *testing.F) {
	for _, dir := range []string{"valid", "invalid"} {
		for _, name := range files(f, dir) {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	req := request(f, full())
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		ps := Check("f.yaml", data, nil)
		e, err := Compile("f.yaml", data, nil, Options{})
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
		if d.Status != decision.OK && d.Status != decision.Abstain {
			t.Fatalf("%+v", d)
		}
		x, err := e.Explain(context.Background(), req)
		if err != nil || x.Reason != d.Reason || len(x.Skipped) != int(d.Reason.Skipped) {
			t.Fatalf("%+v explains %+v, %v", x, d, err)
		}
	})
}
