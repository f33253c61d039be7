package recorder

import (
	"context"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

// BenchmarkShadow shows what a shadow adds to the caller's own path: the draw, the copy of
// the request and the start of a goroutine; or, with every place taken, the skip.
func BenchmarkShadow(b *testing.B) {
	hang := make(chan struct{})
	defer close(hang)
	for name, o := range map[string]ShadowOptions{"none": {}, "draw": {Rate: 1e-9}, "busy": {Concurrency: 1}, "asked": {Concurrency: 1 << 20}} {
		b.Run(name, func(b *testing.B) {
			r := benchRecorder(b, Options{QueueRows: 1 << 16})
			c := &candidate{}
			if name == "busy" {
				c.decide = func(context.Context, *decision.Request, *decision.Response) error { <-hang; return nil }
			}
			s, err := r.Shadow(c, o)
			if err != nil {
				b.Fatal(err)
			}
			w := r.Wrap(&fake{answer: "allow"}, s)
			if name == "none" {
				w = r.Wrap(&fake{answer: "allow"})
			}
			req, out := shadowRequest(), decision.Response{}
			b.ReportAllocs()
			for i := 1; b.Loop(); i++ {
				w.Decide(context.Background(), req, &out)
				if i%1024 == 0 { // a request that is dropped is not shadowed: let none be
					b.StopTimer()
					r.Flush(context.Background())
					b.StartTimer()
				}
			}
			if st := r.Stats(); name == "asked" && st.Shadow.Asked < uint64(b.N) || st.Ledger.DroppedTotal() > 0 {
				b.Errorf("%+v of %d", st, b.N)
			}
		})
	}
}
