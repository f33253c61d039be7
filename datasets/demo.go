package datasets

import (
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"slices"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
)

//go:generate go run ./demo/train -o demo/backends

// ErrNoScenario reports a name that is no demo scenario.
var ErrNoScenario = errors.New("no such demo scenario")

//go:embed demo/data
var demoData embed.FS

//go:embed demo/backends demo/prices.yaml
var demoStrategies embed.FS

// The demo scenarios.
const (
	APIAbuse     = "api-abuse"
	Fraud        = "fraud"
	EdgeRoute    = "edge-routing"
	demoEdgeSeed = 42
	demoEdgeRows = 5000
)

// Example is one labelled request: what a service is asked, what it may answer, and the
// truth. It is valid after the iteration that yielded it.
type Example struct {
	Scenario     string
	Method, Path string
	// Headers are the request's own, beyond what HTTP itself needs.
	Headers map[string]string
	// Attrs is everything that a backend may see, Method, Path and Headers included.
	Attrs      decision.Attrs
	Candidates []string
	// Label has neither Ref nor ID: the recorder gives those.
	Label snapshot.Label
	// SourceID is unique in the scenario and names the row of the source.
	SourceID string
	// Entity is what examples have in common that are not independent of one another.
	Entity string
	// Train marks the part that strategies were made from; scores use the rest.
	Train bool
}

// DemoScenarios returns the names of the demo scenarios, sorted.
func DemoScenarios() []string { return []string{APIAbuse, EdgeRoute, Fraud} }

// Demo yields the examples of a demo scenario in a fixed order, training and test rows
// mixed. The error wraps [ErrNoScenario] for an unknown name.
func Demo(scenario string) iter.Seq2[*Example, error] {
	switch scenario {
	case APIAbuse:
		return agentExamples()
	case Fraud:
		return creditExamples()
	case EdgeRoute:
		return func(yield func(*Example, error) bool) {
			for ex := range EdgeRouting(demoEdgeSeed, 0, demoEdgeRows) {
				if !yield(ex, nil) {
					return
				}
			}
		}
	}
	return func(yield func(*Example, error) bool) {
		yield(nil, fmt.Errorf("%w: %q (have %q)", ErrNoScenario, scenario, DemoScenarios()))
	}
}

// DemoTask returns what a demo scenario is about: candidates, utilities, the strength of
// its labels, and the ceiling of its test rows where it is known. Baseline, majority and
// top are left open (NaN): they are facts of the rows that get labels, and
// [AttachLabels] freezes them.
func DemoTask(scenario string) (scoring.Task, error) {
	var t scoring.Task
	switch scenario {
	case APIAbuse:
		t = agentTask()
	case Fraud:
		t = creditTask()
	case EdgeRoute:
		t = edgeTask()
	default:
		return t, fmt.Errorf("%w: %q (have %q)", ErrNoScenario, scenario, DemoScenarios())
	}
	nan := scoring.Number(math.NaN())
	t.Baseline, t.Top, t.Majority = nan, nan, nan
	return t, nil
}

// DemoFiles returns the demo's strategies: backends/<scenario>/{incumbent.yaml,
// rules.yaml, strategy.yaml, matrix.json, model.json} and prices.yaml. All but the
// incumbents were made from the training rows of [Demo].
func DemoFiles() fs.FS {
	sub, err := fs.Sub(demoStrategies, "demo")
	if err != nil {
		return demoStrategies // not reached: "demo" is a valid path
	}
	return sub
}

// inTrain splits by the content of a row, so that equal rows fall on the same side and
// the side depends on nothing else: 154 of 256 hash values, 60 %, are training.
func inTrain(content string) bool {
	h := sha256.Sum256([]byte("clefbench demo split 1\x00" + content))
	return h[0] < 154
}

// embedded returns an unpacked data file.
func embedded(name string) ([]byte, error) {
	f, err := demoData.Open("demo/data/" + name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// failing yields one error.
func failing(err error) iter.Seq2[*Example, error] {
	return func(yield func(*Example, error) bool) { yield(nil, err) }
}

// schemaOf builds the schema of a scenario: method and path stand first.
func schemaOf(fields ...decision.Field) (*decision.Schema, error) {
	all := []decision.Field{{Name: "method", Type: decision.String}, {Name: "path", Type: decision.String}}
	return decision.NewSchema(slices.Concat(all, fields)...)
}
