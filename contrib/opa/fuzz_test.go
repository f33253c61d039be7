package opa

import (
	"context"
	"os"
	"testing"
	"time"
)

// A policy never panics, check and compile agree, and what compiles decides.
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
	f.Add([]byte(edge))
	req := request(f, full())
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<12 {
			return
		}
		ps := Check("p.rego", data)
		e, err := Compile("p.rego", data, Options{})
		if (err == nil) != (ps.Errors() == 0) {
			t.Fatalf("check finds %v, compile says %v", ps, err)
		}
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		d := e.decide(ctx, req, e.plan.input(&req.Attrs))
		if d.Status == 0 {
			t.Fatalf("%+v", d)
		}
		if x, err := e.Explain(ctx, req); err == nil && x.Reason != d.Reason {
			t.Fatalf("%+v explains %+v", x, d)
		}
	})
}
