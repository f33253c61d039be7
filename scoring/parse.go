package scoring

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clefbench/clefbench/internal/document"
)

// FileVersion is the version of profile and price files: others are refused, and a file
// without a version has this one.
const FileVersion = 1

// reader walks a file; its methods leave the target alone where a field is absent.
type reader struct{ file *document.File }

func (reader) version(m *document.Map) {
	if v := m.Get("version"); v != nil {
		v.Int(FileVersion, FileVersion)
	}
}

func (reader) text(n *document.Node, to *string) {
	if n == nil {
		return
	}
	if s, ok := n.Text(); ok {
		*to = s
	}
}

// number reads a number within [lo, hi].
func (reader) number(n *document.Node, lo, hi float64, to *float64) {
	if n == nil {
		return
	}
	v, ok := n.Float()
	switch {
	case !ok:
	case v < lo || v > hi:
		n.Errorf("", "%s must be from %v to %v, got %v", n.Path(), lo, hi, v)
	default:
		*to = v
	}
}

// positive reads a number above 0.
func (reader) positive(n *document.Node, to *float64) {
	if n == nil {
		return
	}
	if v, ok := n.Float(); ok && v > 0 {
		*to = v
	} else if ok {
		n.Errorf("", "%s must be above 0, got %v", n.Path(), v)
	}
}

// duration reads a positive duration: 0.5ms, 1s.
func (reader) duration(n *document.Node, to *time.Duration) {
	if n == nil {
		return
	}
	s, ok := n.Text()
	if !ok {
		return
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		n.Errorf("write a number with a unit, as in 0.5ms or 1s", "%s: %q is not a duration above 0", n.Path(), s)
		return
	}
	*to = d
}

// ParseProfile reads a profile file: a preset by name ("extends", default: default) and
// what differs from it. The name stands in positions; the error is a document.Problems
// with everything that is wrong.
func ParseProfile(name string, data []byte) (*Profile, error) {
	f, root, err := document.Parse(name, data)
	if err != nil {
		return nil, err
	}
	r := reader{f}
	top := root.Map("version", "name", "extends", "weights", "latency", "cost", "floors", "scenario_weights", "seed", "tasks")
	r.version(top)
	p := r.base(top.Get("extends"))
	r.text(top.Get("name"), &p.Name)
	r.weights(top.Get("weights"), p)
	r.anchors(top, p)
	if n := top.Get("floors"); n != nil {
		m := n.Map("accuracy", "attainment", "auditability")
		r.number(m.Get("accuracy"), -100, 100, &p.Floors.Accuracy)
		r.number(m.Get("attainment"), 0, 1, &p.Floors.Attainment)
		r.number(m.Get("auditability"), 0, 100, &p.Floors.Auditability)
	}
	r.scenarioWeights(top.Get("scenario_weights"), p)
	if n := top.Get("seed"); n != nil {
		if v, ok := n.Int(0, math.MaxInt64); ok {
			p.Seed = uint64(v)
		}
	}
	if n := top.Get("tasks"); n != nil {
		for _, e := range n.Map().Entries() {
			p.Tasks[e.Key] = ReadTask(e.Value)
		}
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// base is the preset that the file starts from.
func (r reader) base(n *document.Node) *Profile {
	name := "default"
	r.text(n, &name)
	p, err := Preset(name)
	if err == nil {
		return p
	}
	hint := "known presets: " + strings.Join(PresetNames(), ", ")
	if near := document.Closest(name, PresetNames()); near != "" {
		hint = "did you mean " + strconv.Quote(near) + "?"
	}
	n.Errorf(hint, "unknown preset %q", name)
	p, _ = Preset("default")
	return p
}

func (r reader) weights(n *document.Node, p *Profile) {
	if n == nil {
		return
	}
	m := n.Map("accuracy", "latency", "cost", "auditability")
	w := &p.Weights
	// Weights are given all four or none: a lone one would change the others silently.
	sum := 0.0
	for _, e := range []struct {
		name string
		to   *float64
	}{{"accuracy", &w.Accuracy}, {"latency", &w.Latency}, {"cost", &w.Cost}, {"auditability", &w.Auditability}} {
		r.number(m.Need(e.name), 0, 1, e.to)
		sum += *e.to
	}
	if r.file.Problems.Errors() == 0 && math.Abs(sum-1) > weightTolerance {
		n.Errorf("", "weights must sum to 1, they sum to %v", sum)
	}
}

func (r reader) anchors(top *document.Map, p *Profile) {
	if n := top.Get("latency"); n != nil {
		m := n.Map("good", "bad", "deadline")
		r.duration(m.Get("good"), &p.Latency.Good)
		r.duration(m.Get("bad"), &p.Latency.Bad)
		r.duration(m.Get("deadline"), &p.Latency.Deadline)
		if p.Latency.Bad <= p.Latency.Good {
			n.Errorf("", "latency.bad (%v) must be above latency.good (%v)", p.Latency.Bad, p.Latency.Good)
		}
	}
	if n := top.Get("cost"); n != nil {
		m := n.Map("good", "bad")
		r.positive(m.Get("good"), &p.Cost.Good)
		r.positive(m.Get("bad"), &p.Cost.Bad)
		if p.Cost.Bad <= p.Cost.Good {
			n.Errorf("", "cost.bad (%v) must be above cost.good (%v)", p.Cost.Bad, p.Cost.Good)
		}
	}
}

func (r reader) scenarioWeights(n *document.Node, p *Profile) {
	if n == nil {
		return
	}
	p.ScenarioWeights = map[string]float64{}
	sum := 0.0
	for _, e := range n.Map().Entries() {
		w := 0.0
		r.number(e.Value, 0, 1, &w)
		p.ScenarioWeights[e.Key] = w
		sum += w
	}
	if sum > 1+weightTolerance {
		n.Errorf("", "scenario weights must not sum to more than 1, they sum to %v", sum)
	}
}

// ReadTask reads one scenario's task, as it stands under "tasks" in a profile and in a
// data set's manifest; problems go to the node's file. Absent numbers are NaN.
func ReadTask(n *document.Node) Task {
	r := reader{n.File()}
	m := n.Map("candidates", "utility", "unanswered", "baseline", "baseline_action", "top", "majority", "ceiling", "label_strength")
	t := NewTask()
	if c := m.Get("candidates"); c != nil {
		t.Candidates = readCandidates(c)
	}
	if u := m.Get("unanswered"); u != nil {
		v := 0.0
		r.number(u, 0, 1, &v)
		t.Unanswered = &v
	}
	for name, to := range map[string]*Number{"baseline": &t.Baseline, "top": &t.Top, "majority": &t.Majority, "ceiling": &t.Ceiling} {
		r.number(m.Get(name), 0, 1, (*float64)(to))
	}
	r.text(m.Get("baseline_action"), &t.BaselineAction)
	r.text(m.Get("label_strength"), &t.LabelStrength)
	if u := m.Get("utility"); u != nil {
		t.Utility = map[string]map[string]float64{}
		for _, truth := range u.Map().Entries() {
			t.Utility[truth.Key] = r.utilities(truth.Value, t.Candidates)
		}
	}
	return t
}

func readCandidates(n *document.Node) []string {
	var out []string
	for _, c := range n.List() {
		s, ok := c.Text()
		switch {
		case !ok:
		case s == "" || slices.Contains(out, s):
			c.Errorf("", "candidate %q is empty or stands twice", s)
		default:
			out = append(out, s)
		}
	}
	return out
}

// utilities reads one row of the matrix. Its columns are candidates, with or without a
// parameter, or the ways not to choose.
func (r reader) utilities(n *document.Node, candidates []string) map[string]float64 {
	row := map[string]float64{}
	for _, e := range n.Map().Entries() {
		u := 0.0
		r.number(e.Value, 0, 1, &u)
		row[e.Key] = u
		label, _, _ := strings.Cut(e.Key, "{")
		if len(candidates) == 0 || slices.Contains(candidates, label) || label == choiceAbstain || label == choiceDenied {
			continue
		}
		hint := "candidates: " + strings.Join(candidates, ", ")
		if near := document.Closest(label, candidates); near != "" {
			hint = "did you mean " + strconv.Quote(near) + "?"
		}
		r.file.Errorf(e.KeyPos, hint, "%q is not among the candidates", label)
	}
	return row
}

// ParsePrices reads a price book; conventions are those of [ParseProfile].
func ParsePrices(name string, data []byte) (*PriceBook, error) {
	f, root, err := document.Parse(name, data)
	if err != nil {
		return nil, err
	}
	r := reader{f}
	top := root.Map("version", "currency", "prices")
	r.version(top)
	digest := sha256.Sum256(data)
	b := &PriceBook{Digest: hex.EncodeToString(digest[:])}
	r.text(top.Need("currency"), &b.Currency)
	if n := top.Need("prices"); n != nil {
		for _, e := range n.List() {
			b.Prices = append(b.Prices, r.price(e, b.Prices))
		}
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return b, nil
}

func (r reader) price(n *document.Node, before []Price) Price {
	m := n.Map("backend", "model", "unit", "price", "effective", "url", "retrieved", "note")
	var p Price
	r.text(m.Need("backend"), &p.Backend)
	r.text(m.Get("model"), &p.Model)
	r.text(m.Get("url"), &p.URL)
	r.text(m.Get("note"), &p.Note)
	r.number(m.Need("price"), 0, math.MaxFloat64, &p.Price)
	r.date(m.Need("effective"), &p.Effective)
	r.date(m.Get("retrieved"), &p.Retrieved)
	if u := m.Need("unit"); u != nil {
		r.unit(u, &p.Unit)
	}
	for _, b := range before {
		if b.Backend == p.Backend && b.Model == p.Model && b.Unit == p.Unit && p.Unit != "" {
			n.Errorf("", "a second price of %s per %s", p.Backend, p.Unit)
		}
	}
	return p
}

func (r reader) unit(n *document.Node, to *string) {
	r.text(n, to)
	if *to == "" || slices.Contains(units(), *to) {
		return
	}
	hint := "units: " + strings.Join(units(), ", ")
	if near := document.Closest(*to, units()); near != "" {
		hint = "did you mean " + strconv.Quote(near) + "?"
	}
	n.Errorf(hint, "unknown unit %q", *to)
}

func (r reader) date(n *document.Node, to *string) {
	if n == nil {
		return
	}
	s, ok := n.Text()
	if !ok {
		return
	}
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		n.Errorf("write it as 2026-11-30", "%s: %q is not a date", n.Path(), s)
		return
	}
	*to = s
}
