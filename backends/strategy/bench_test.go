package strategy

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

func generated(n int) string {
	var b strings.Builder
	b.WriteString("strategy: s\nrules:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - id: r%d\n    if: headers[\"user-agent\"].contains(\"token%d\") && metrics.m%d > %d.5\n    action: a%d\n", i, i, i%16, i%7, i%5)
	}
	b.WriteString("fallback: {action: origin}\n")
	return b.String()
}

func BenchmarkDecide(b *testing.B) {
	attrs := map[string]any{"headers.user-agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"}
	for i := range 16 {
		attrs[fmt.Sprintf("metrics.m%d", i)] = 0.25
	}
	req := request(b, attrs)
	for _, n := range []int{2, 100, 1000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			e := compile(b, generated(n), nil)
			var out decision.Response
			b.ReportAllocs()
			for b.Loop() {
				if err := e.Decide(context.Background(), req, &out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	data := []byte(generated(100))
	for b.Loop() {
		if _, err := Compile("f.yaml", data, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
