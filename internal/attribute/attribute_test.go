package attribute

import (
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

// testSchema is the data set that the tests of this package speak about.
func testSchema(t testing.TB) *decision.Schema {
	t.Helper()
	s, err := decision.NewSchema(
		decision.Field{Name: "path", Type: decision.String},
		decision.Field{Name: "headers.user-agent", Type: decision.String},
		decision.Field{Name: "env.country", Type: decision.String},
		decision.Field{Name: "metrics.rate", Type: decision.Double},
		decision.Field{Name: "metrics.load", Type: decision.Double},
		decision.Field{Name: "count", Type: decision.Int},
		decision.Field{Name: "limit", Type: decision.Int},
		decision.Field{Name: "score", Type: decision.Double},
		decision.Field{Name: "flag", Type: decision.Bool},
		decision.Field{Name: "edge.error_rate_1m", Type: decision.Double},
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// parse reads a document that must be well formed.
func parse(t testing.TB, text string) (*document.File, *document.Node) {
	t.Helper()
	f, n, err := document.Parse("f.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f, n
}
