package reports

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clefbench/clefbench/scoring"
)

func mustJSON(t testing.TB, card *scoring.Scorecard) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := JSON(&b, card, Options{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sameBits compares numbers by their bits, but any NaN with any other.
var sameBits = cmp.Comparer(func(a, b scoring.Number) bool {
	if math.IsNaN(float64(a)) || math.IsNaN(float64(b)) {
		return math.IsNaN(float64(a)) && math.IsNaN(float64(b))
	}
	return math.Float64bits(float64(a)) == math.Float64bits(float64(b))
})

func TestJSONRoundTrip(t *testing.T) {
	for name, card := range cards() {
		t.Run(name, func(t *testing.T) {
			text := mustJSON(t, card)
			golden(t, name+".json", text)
			got, err := ReadJSON(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(filled(card), got, sameBits); diff != "" {
				t.Errorf("not the same card (-written +read):\n%s", diff)
			}
			if again := mustJSON(t, got); !bytes.Equal(text, again) {
				t.Error("the second writing differs from the first")
			}
		})
	}
}

// Numbers that are hard to write keep every bit.
func TestJSONKeepsBits(t *testing.T) {
	for _, v := range []float64{0.1, 1.0 / 3, math.SmallestNonzeroFloat64, math.MaxFloat64, math.Copysign(0, -1), 1e21, 123456789012345680, math.Nextafter(100, 0)} {
		card := oneCard()
		card.Backends[0].Total.Value = scoring.Number(v)
		got, err := ReadJSON(bytes.NewReader(mustJSON(t, card)))
		if err != nil {
			t.Fatal(err)
		}
		if back := float64(got.Backends[0].Total.Value); math.Float64bits(back) != math.Float64bits(v) {
			t.Errorf("%b came back as %b", v, back)
		}
	}
}

// The contract's names, as a program in another language would look for them.
func TestJSONContract(t *testing.T) {
	var doc map[string]any
	if err := json.Unmarshal(mustJSON(t, hostileCard()), &doc); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"score_version", "profile/name", "profile/weights/accuracy", "dataset/snapshots", "dataset/requests", "dataset/digest",
		"dataset/ledger/offered", "dataset/ledger/written", "dataset/ledger/sampled_out", "dataset/ledger/dropped",
		"backends/0/name", "backends/0/kind", "backends/0/eligible", "backends/0/total/value", "backends/0/total/lo", "backends/0/total/hi",
		"backends/0/categories/accuracy/value", "backends/0/categories/latency/lo", "backends/0/categories/cost/hi",
		"backends/0/categories/auditability/evidence", "backends/1/categories/cost/na",
		"backends/0/counts/offered", "backends/0/counts/answered", "backends/0/counts/timeouts", "backends/0/counts/errors",
		"backends/0/counts/not_replayable", "backends/0/latency_ns/p50", "backends/0/latency_ns/p95", "backends/0/latency_ns/p99",
		"backends/0/scenarios/api-abuse/total/value", "backends/0/scenarios/api-abuse/majority",
		"pairs/0/base", "pairs/0/new", "pairs/0/n", "pairs/0/diff", "pairs/0/lo", "pairs/0/hi", "pairs/0/p", "pairs/0/mde", "pairs/0/verdict",
		"ties/0/0", "warnings/0/text", "run/path", "run/digest",
	} {
		if _, ok := lookUp(doc, path); !ok {
			t.Errorf("%s is missing", path)
		}
	}
	if v, _ := lookUp(doc, "backends/1/total/value"); v != nil {
		t.Errorf("a refused total is %v, want null", v)
	}
}

// lookUp follows a path of names and indices of one digit.
func lookUp(v any, path string) (any, bool) {
	for _, part := range strings.Split(path, "/") {
		switch x := v.(type) {
		case map[string]any:
			next, ok := x[part]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i := int(part[0] - '0')
			if i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// Without backends, pairs, ties or warnings, the lists are empty and not null.
func TestJSONListsAreNeverNull(t *testing.T) {
	text := string(mustJSON(t, &scoring.Scorecard{ScoreVersion: scoring.Version, Ties: [][]string{nil}, Backends: []scoring.BackendScore{{Name: "a"}}}))
	for _, want := range []string{`"pairs": []`, `"warnings": []`, `"dropped": {}`, `"scenarios": {}`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, `"ties": null`) {
		t.Error("ties is null")
	}
}

func TestReadJSONRefuses(t *testing.T) {
	good := string(mustJSON(t, demoCard()))
	cut := func(old, new string) string {
		out := strings.Replace(good, old, new, 1)
		if out == good {
			t.Fatalf("no %q in the report", old)
		}
		return out
	}
	for _, tt := range []struct {
		name, text string
		is         error
		want       string
	}{
		{"empty", "", ErrReport, "unexpected end"},
		{"not JSON", "{\n  oops", ErrReport, "2:3: "},
		{"not an object", "[1]", ErrReport, "1:1: "},
		{"truncated", good[:len(good)/2], ErrReport, "unexpected end"},
		{"text after it", good + "{}", ErrReport, "after top-level value"},
		{"other version", cut(`"score_version": "1"`, `"score_version": "2"`), ErrScoreVersion, `"2": this build knows "1"`},
		{"no version", cut(`"score_version": "1",`, ``), ErrReport, "score_version is missing"},
		{"number is text", cut(`"snapshots": 4094`, `"snapshots": "4094"`), ErrReport, "snapshots"},
		{"count is not whole", cut(`"snapshots": 4094`, `"snapshots": 4094.5`), ErrReport, "snapshots"},
		{"count is null", cut(`"snapshots": 4094`, `"snapshots": null`), ErrReport, "dataset/snapshots is missing or null"},
		{"field missing", cut(`"eligible": true,`, ``), ErrReport, "backends/0/eligible is missing"},
		{"field in other case", cut(`"eligible": true`, `"Eligible": true`), ErrReport, "backends/0/eligible is missing"},
		{"object is null", cut(`"run": {`, `"run": null, "was": {`), ErrReport, "run is missing or null"},
		{"name twice", cut(`"eligible": true,`, `"eligible": false, "eligible": true,`), ErrReport, `"eligible" stands twice`},
		{"infinite", cut(`"snapshots": 4094`, `"snapshots": 4094, "x": 1e999`), nil, ""},
		{"too deep", cut(`"snapshots": 4094`, `"snapshots": 4094, "x": `+strings.Repeat("[", 200)+strings.Repeat("]", 200)), ErrReport, "nested"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadJSON(strings.NewReader(tt.text))
			if !errors.Is(err, tt.is) {
				t.Fatalf("error %v, want %v", err, tt.is)
			}
			if err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q does not say %q", err, tt.want)
			}
		})
	}
}

// A newer report may have more fields.
func TestReadJSONIgnoresNewFields(t *testing.T) {
	text := strings.Replace(string(mustJSON(t, demoCard())), `"run": {`, `"novelty": [1, {"a": null}], "run": {`, 1)
	card, err := ReadJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(demoCard(), card, sameBits); diff != "" {
		t.Error(diff)
	}
}

func TestReadJSONBoundsSize(t *testing.T) {
	_, err := ReadJSON(strings.NewReader(strings.Repeat(" ", MaxJSON+1)))
	if !errors.Is(err, ErrReport) {
		t.Errorf("error %v", err)
	}
	_, err = ReadJSON(&failingReader{})
	if !errors.Is(err, errDisk) {
		t.Errorf("error %v", err)
	}
}

type failingReader struct{}

func (*failingReader) Read([]byte) (int, error) { return 0, errDisk }

// Whatever is read without an error can be written, and reads back as the same text.
func FuzzReadJSON(f *testing.F) {
	// The golden reports are read by TestJSONRoundTrip; they are too large to be seeds.
	empty := &scoring.Scorecard{ScoreVersion: scoring.Version}
	small := &scoring.Scorecard{ScoreVersion: scoring.Version, Ties: [][]string{{"a"}}, Pairs: []scoring.Pair{{Base: "a", New: "b", P: nan}}}
	small.Backends = []scoring.BackendScore{{Name: "a", Result: refusedScore(1)}}
	small.Backends[0].Scenarios = map[string]scoring.ScenarioScore{"s": {Majority: nan}}
	for _, card := range []*scoring.Scorecard{empty, small} {
		f.Add(mustJSON(f, card))
	}
	f.Add([]byte(`{"score_version": "1"`))
	f.Add([]byte(`{"score_version": "1", "score_version": "1"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		card, err := ReadJSON(bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, ErrReport) && !errors.Is(err, ErrScoreVersion) {
				t.Fatalf("error of no kind: %v", err)
			}
			return
		}
		first := mustJSON(t, card)
		again, err := ReadJSON(bytes.NewReader(first))
		if err != nil {
			t.Fatalf("own report refused: %v", err)
		}
		if second := mustJSON(t, again); !bytes.Equal(first, second) {
			t.Fatal("own report changed on the way")
		}
		for _, format := range Formats() {
			if err := Write(&bytes.Buffer{}, format, card, Options{Width: 60}); err != nil {
				t.Fatalf("%s: %v", format, err)
			}
		}
	})
}
