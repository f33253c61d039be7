package scoring

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sort"
)

// ErrArithmetic reports a scorecard whose numbers do not follow from each other.
var ErrArithmetic = errors.New("scorecard does not add up")

// Recompute checks a scorecard without its run: that categories follow from their
// terms, totals from the categories, counts from their parts, eligibility from the
// floors, verdicts from the intervals and tied sets from the verdicts, all to the last
// bit. The error joins what does not hold; each wraps [ErrArithmetic]. It cannot tell
// whether the terms themselves are true: that takes the run ([Score] and [Diff]).
func Recompute(card *Scorecard) error {
	if card.ScoreVersion != Version {
		return fmt.Errorf("%w: score version %q, this program computes %q", ErrArithmetic, card.ScoreVersion, Version)
	}
	if card.Profile == nil {
		return fmt.Errorf("%w: no profile", ErrArithmetic)
	}
	if err := card.Profile.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrArithmetic, err)
	}
	a := &arithmetic{profile: card.Profile}
	for i := range card.Backends {
		a.backend(&card.Backends[i])
	}
	for i := range card.Pairs {
		a.pair(&card.Pairs[i])
	}
	if want := ties(card); !equalSets(want, card.Ties) {
		a.fail("ties", "%v, from the pairs %v", card.Ties, want)
	}
	return errors.Join(a.errs...)
}

func equalSets(a, b [][]string) bool {
	return slices.EqualFunc(a, b, func(x, y []string) bool { return slices.Equal(x, y) })
}

type arithmetic struct {
	profile *Profile
	errs    []error
}

func (a *arithmetic) fail(where, format string, args ...any) {
	a.errs = append(a.errs, fmt.Errorf("%w: %s: %s", ErrArithmetic, where, fmt.Sprintf(format, args...)))
}

// number compares bit for bit; NaN equals NaN.
func (a *arithmetic) number(where string, got Number, want float64) {
	g := float64(got)
	if g != want && !(math.IsNaN(g) && math.IsNaN(want)) {
		a.fail(where, "is %v, recomputed %v", g, want)
	}
}

func (a *arithmetic) backend(b *BackendScore) {
	sum := Counts{}
	worst, least := "", math.Inf(1)
	for _, name := range sortedKeys(b.Scenarios) {
		s := b.Scenarios[name]
		where := b.Name + ": " + name
		a.scenario(where, &s)
		a.result(where, &s.Result)
		sum.combine(&s.Counts, 1)
		if v := float64(s.Total.Value); v < least {
			worst, least = name, v
		}
	}
	a.result(b.Name, &b.Result)
	a.runCategories(b)
	if b.Worst != worst {
		a.fail(b.Name, "worst scenario %q, recomputed %q", b.Worst, worst)
	}
	c := b.Counts
	c.Reasons, c.Clusters = nil, 0
	if fmt.Sprint(c) != fmt.Sprint(sum) {
		a.fail(b.Name+": counts", "%+v, the scenarios sum to %+v", c, sum)
	}
}

// result checks what scenarios and runs share.
func (a *arithmetic) result(where string, r *Result) {
	c := r.Counts
	if c.Offered != c.Answered+c.Timeouts+c.Errors+c.NotReplayable {
		a.fail(where+": counts", "offered %d is not the sum of the rest", c.Offered)
	}
	_, cats := r.Categories.list()
	var v [4]float64
	for i, cat := range cats {
		v[i] = float64(cat.Value)
	}
	total, geometric := totalScore(v, a.profile.Weights), math.NaN()
	if !math.IsNaN(total) {
		geometric = geometricScore(v, a.profile.Weights)
	}
	a.number(where+": total", r.Total.Value, total)
	a.number(where+": geometric", r.Geometric, geometric)
	if na := totalNA(&r.Categories, a.profile.Weights); na != r.Total.NA {
		a.fail(where+": total", "NA %q, from the categories %q", r.Total.NA, na)
	}
	want := floors(a.profile, &r.Categories)
	if c.Offered > 0 && !slices.Equal(want, r.Ineligible) {
		a.fail(where, "ineligible %q, from the floors %q", r.Ineligible, want)
	}
	if r.Eligible != (len(r.Ineligible) == 0) {
		a.fail(where, "eligible %v with %q", r.Eligible, r.Ineligible)
	}
}

func (a *arithmetic) scenario(where string, s *ScenarioScore) {
	acc := &s.Categories.Accuracy
	if acc.NA == "" {
		dec := decisionScore(float64(acc.term("U").Value), float64(acc.term("U_base").Value), float64(acc.term("U_top").Value))
		a.number(where+": A_dec", acc.term("A_dec").Value, dec)
		a.number(where+": accuracy", acc.Value, accuracyScore(dec, float64(acc.term(termSkill).Value)))
	}
	if lat := &s.Categories.Latency; lat.NA == "" {
		a.number(where+": latency", lat.Value, a.latency(lat))
	}
	if cost := &s.Categories.Cost; cost.NA == "" {
		price := 0.0
		for _, t := range cost.parts() {
			price += float64(t.Value)
		}
		a.number(where+": price", cost.term(termPrice).Value, price)
		a.number(where+": cost", cost.Value, costScore(price, a.profile.Cost))
	}
	if aud := &s.Categories.Auditability; aud.NA == "" {
		var q, w []float64
		for _, t := range aud.Terms {
			q, w = append(q, float64(t.Value)), append(w, float64(t.Weight))
		}
		a.number(where+": auditability", aud.Value, auditScore(q, w))
	}
}

// parts are the terms after the first: a hand-made category may have none.
func (c *Category) parts() []Term { return c.Terms[min(1, len(c.Terms)):] }

func (a *arithmetic) latency(c *Category) float64 {
	var t, w []float64
	for _, q := range c.parts() {
		v := float64(q.Value)
		if q.NA != "" { // beyond every answer
			v = math.Inf(1)
		}
		t, w = append(t, v), append(w, float64(q.Weight))
	}
	return latencyScore(float64(c.term("attainment").Value), t, w, a.profile.Latency)
}

// runCategories checks that the categories of a run are the means of its scenarios'.
func (a *arithmetic) runCategories(b *BackendScore) {
	names, cats := b.Categories.list()
	for i, cat := range cats {
		var v, w []float64
		for k, name := range sortedKeys(b.Scenarios) {
			if k >= len(cat.Terms) || cat.Terms[k].Name != name {
				a.fail(b.Name+": "+names[i], "scenario %s is not among the terms", name)
				return
			}
			s := b.Scenarios[name]
			_, parts := s.Categories.list()
			a.number(b.Name+": "+names[i]+" of "+name, cat.Terms[k].Value, float64(parts[i].Value))
			v, w = append(v, float64(cat.Terms[k].Value)), append(w, float64(cat.Terms[k].Weight))
		}
		value, _ := mean(v, w)
		a.number(b.Name+": "+names[i], cat.Value, value)
	}
}

func (a *arithmetic) pair(p *Pair) {
	if want := verdict(float64(p.Lo), float64(p.Hi), float64(p.P)); p.Verdict != want {
		where := fmt.Sprintf("pair %s, %s %s %s", p.Base, p.New, p.Measure, p.Scenario)
		a.fail(where, "verdict %q, from the interval and p %q", p.Verdict, want)
	}
}

// Diff compares two scorecards and lists every place where they differ, as
// "path: one, other", sorted. Where the run lies (run.path) does not count.
func Diff(a, b *Scorecard) []string {
	x, errA := generic(a)
	y, errB := generic(b)
	if err := errors.Join(errA, errB); err != nil {
		return []string{err.Error()}
	}
	var out []string
	diff("", x, y, &out)
	sort.Strings(out)
	return out
}

func generic(card *Scorecard) (any, error) {
	c := *card
	c.Run.Path = ""
	data, err := json.Marshal(&c)
	if err != nil {
		return nil, fmt.Errorf("scorecard to JSON: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // 1e300 and 0.1 stay what they are
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("scorecard from JSON: %w", err)
	}
	return v, nil
}

// nothing reports whether a value says nothing: an empty list or map is written as null
// by some and as empty by others.
func nothing(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(x) == 0
	case []any:
		return len(x) == 0
	}
	return false
}

func diff(path string, a, b any, out *[]string) {
	if nothing(a) && nothing(b) {
		return
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			diffMaps(path, x, y, out)
			return
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				diff(fmt.Sprintf("%s[%d]", path, i), x[i], y[i], out)
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		*out = append(*out, fmt.Sprintf("%s: %s, %s", path, short(a), short(b)))
	}
}

func diffMaps(path string, a, b map[string]any, out *[]string) {
	for k := range a {
		diff(path+"."+k, a[k], b[k], out)
	}
	for k := range b {
		if _, both := a[k]; !both {
			diff(path+"."+k, nil, b[k], out)
		}
	}
}

func short(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(data) > 80 {
		return string(data[:77]) + "..."
	}
	return string(data)
}
