package scoring

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/clefbench/clefbench/internal/stats"
)

// Warning codes.
const (
	WarnPartial       = "partial-run"
	WarnNotIntact     = "dataset-not-intact"
	WarnQuantile      = "quantile-dropped"
	WarnFewClusters   = "few-clusters"
	WarnShareNA       = "na-share"
	WarnClock         = "clock-dominates"
	WarnNoPrices      = "no-prices"
	WarnEstimated     = "estimated-prices"
	WarnNoReceipt     = "price-without-receipt"
	WarnUsage         = "usage-estimated"
	WarnUnlabelled    = "unlabelled"
	WarnTruth         = "unknown-truth"
	WarnWeighted      = "weighted"
	WarnLowESS        = "low-ess"
	WarnCoverage      = "unequal-coverage"
	WarnNotReplayable = "not-replayable"
	WarnUntimed       = "latency-missing"
	WarnUnset         = "scenario-weight-unused"
)

// Below minEffective clusters of equal weight, or with more than maxTop of the weight on
// one cluster in a hundred, the intervals of weighted means are too narrow: simulated,
// 95 % of accuracy cover 86 % when keep_prob differs by a factor of 100.
const (
	minEffective = 100
	maxTop       = 0.50
)

// clockBound is the latency below which two clock reads are a large part of what was
// measured.
const clockBound = 2000

type warner struct {
	out []Warning
}

func (w *warner) add(code, backend, scenario, format string, args ...any) {
	w.out = append(w.out, Warning{Code: code, Backend: backend, Scenario: scenario, Text: fmt.Sprintf(format, args...)})
}

// warnings collects what the reader of the scorecard must know. Findings that are the
// same for all backends of a scenario are given once, without a backend.
func (c *Collection) warnings(results []*laneResult, card *Scorecard) []Warning {
	w := &warner{out: []Warning{}}
	if card.Run.Partial {
		w.add(WarnPartial, "", "", "the run was interrupted: this is the score of the part that ran")
	}
	if !card.Dataset.Intact {
		w.add(WarnNotIntact, "", "", "the data set is not intact: a digest or a ledger does not hold (q6 is 0)")
	}
	c.profileWarnings(w, card)
	shared := newSharedWarnings(len(results))
	for _, res := range results {
		res.warn(w, shared)
	}
	shared.emit(w)
	c.coverage(w)
	return w.out
}

func (c *Collection) profileWarnings(w *warner, card *Scorecard) {
	p := c.profile
	if p.Prices == nil && p.Weights.Cost > 0 {
		w.add(WarnNoPrices, "", "", "no price book: cost is NA, and so is the total")
	}
	names := card.ScenarioNames()
	for _, s := range sortedKeys(p.ScenarioWeights) {
		if !slices.Contains(names, s) {
			w.add(WarnUnset, "", s, "the profile weighs scenario %s, which the run does not have", s)
		}
	}
	var estimated, unproven []string
	for _, l := range c.lanes {
		for _, m := range l.meters.list[1:] {
			what := m.receipt.Backend + " per " + m.unit
			if strings.Contains(strings.ToLower(m.receipt.Note), "estimate") {
				estimated = append(estimated, what)
			} else if m.receipt.URL == "" {
				unproven = append(unproven, what)
			}
		}
	}
	w.prices(WarnEstimated, "prices that are estimates", estimated)
	w.prices(WarnNoReceipt, "prices without a URL as their receipt", unproven)
}

func (w *warner) prices(code, what string, entries []string) {
	slices.Sort(entries)
	if entries = slices.Compact(entries); len(entries) > 0 {
		w.add(code, "", "", "%s: %s", what, strings.Join(entries, ", "))
	}
}

// sharedWarnings are scenario findings; one that every backend has is a fact of the
// scenario.
type sharedWarnings struct {
	lanes int
	order []Warning
	by    map[Warning][]string
}

func newSharedWarnings(lanes int) *sharedWarnings {
	return &sharedWarnings{lanes: lanes, by: map[Warning][]string{}}
}

func (s *sharedWarnings) add(code, backend, scenario, format string, args ...any) {
	key := Warning{Code: code, Scenario: scenario, Text: fmt.Sprintf(format, args...)}
	if len(s.by[key]) == 0 {
		s.order = append(s.order, key)
	}
	s.by[key] = append(s.by[key], backend)
}

func (s *sharedWarnings) emit(w *warner) {
	sort.SliceStable(s.order, func(i, j int) bool {
		a, b := s.order[i], s.order[j]
		if a.Code != b.Code {
			return a.Code < b.Code
		}
		return a.Scenario < b.Scenario
	})
	for _, key := range s.order {
		backends := s.by[key]
		if len(backends) == s.lanes {
			w.out = append(w.out, key)
			continue
		}
		for _, b := range backends {
			one := key
			one.Backend = b
			w.out = append(w.out, one)
		}
	}
}

func (res *laneResult) warn(w *warner, shared *sharedWarnings) {
	name := res.score.Name
	var fast []string
	for i, scenario := range res.names {
		m, s := res.models[i], res.score.Scenarios[scenario]
		res.warnData(m, scenario, shared)
		res.warnConcentration(i, scenario, shared)
		if s.Counts.NotReplayable > 0 {
			w.add(WarnNotReplayable, name, scenario, "%d of %d decisions cannot be replayed: they count as unanswered", s.Counts.NotReplayable, s.Counts.Offered)
		}
		if p50 := float64(s.LatencyNs.P50); s.Categories.Latency.NA == "" && p50 < clockBound {
			fast = append(fast, scenario)
		}
		if t := m.tally; !t.untimed.IsZero() && s.Categories.Latency.NA == "" {
			w.add(WarnUntimed, name, scenario, "%s of the answered requests have no latency and are left out of it", percent(t.untimed.Float()/(t.untimed.Float()+t.timed.Float())))
		}
		if m.scale > 1 {
			w.add(WarnUsage, name, scenario, "%s of the calls failed without a known usage: they are taken to cost what the others cost", percent(1-1/m.scale))
		}
	}
	if len(fast) > 0 {
		w.add(WarnClock, name, "", "p50 is below %d ns in %s: reading the clock is a large part of what was measured", clockBound, strings.Join(fast, ", "))
	}
	names, cats := res.score.Categories.list()
	for k := range cats {
		res.warnShare(w, names[k], cats[k])
	}
}

// warnData gives the findings that come from the data and not from the backend.
func (res *laneResult) warnData(m *model, scenario string, shared *sharedWarnings) {
	name, t := res.score.Name, m.tally
	if m.na[catLatency] == "" {
		for _, q := range latencyQuantiles(math.MaxInt64)[len(m.terms):] {
			shared.add(WarnQuantile, name, scenario, "%s is not scored: it needs %d requests, there are %d; the other quantiles take its weight", q.name, q.need, t.requests)
		}
	}
	if n, _ := t.clusters.Count(); n < stats.MinGroups {
		shared.add(WarnFewClusters, name, scenario, "%d clusters: below %d there are no intervals", n, stats.MinGroups)
	}
	if n := t.counts.Offered - t.counts.Labelled; n > 0 && t.counts.Labelled > 0 {
		shared.add(WarnUnlabelled, name, scenario, "%s of the decisions have no label and are left out of accuracy", percent(float64(n)/float64(t.counts.Offered)))
	}
	if t.unknownTruth > 0 {
		shared.add(WarnTruth, name, scenario, "%d labels name an action that the utility matrix does not know: they are left out", t.unknownTruth)
	}
	if t.weighted {
		sum := m.sums[colOffered]
		shared.add(WarnWeighted, name, scenario, "rows are weighted by 1/keep_prob: %d rows count as %.0f", t.counts.Offered, sum*sum/t.squares.Float())
	}
}

// warnConcentration looks at the groups that are resampled: clusters, or hashed groups of
// them. Few clusters of equal weight are not its business: Student's t makes up for them.
func (res *laneResult) warnConcentration(i int, scenario string, shared *sharedWarnings) {
	m, frame := res.models[i], res.intervals.ensemble.fine[i]
	col := colTruth
	if m.sums[col] == 0 {
		col = colOffered
	}
	filled := frame.Filled(col)
	effective, top := stats.Concentration(frame.Cols[col])
	uneven := m.tally.weighted || effective < float64(filled)/2
	if filled >= stats.MinGroups && (top > maxTop || effective < minEffective && uneven) {
		shared.add(WarnLowESS, res.score.Name, scenario,
			"few clusters carry the weight: %d count as %.0f equal ones, and %s of the weight lies on the heaviest hundredth; intervals may be too narrow",
			filled, effective, percent(top))
	}
}

func (res *laneResult) warnShare(w *warner, category string, cat *Category) {
	missing, why := 0.0, ""
	for i := range res.names {
		if t := cat.Terms[i]; t.NA != "" {
			missing += float64(t.Weight)
			why = orElse(why, t.Name+": "+t.NA)
		}
	}
	if missing > 0 && cat.NA == "" {
		w.add(WarnShareNA, res.score.Name, "", "%s is NA for %s of the decisions, which are left out (%s)", category, percent(missing), why)
	}
}

// coverage warns of lanes that were offered different decisions.
func (c *Collection) coverage(w *warner) {
	for _, l := range c.lanes {
		n := int64(0)
		for _, t := range l.tallies {
			n += t.counts.Offered
		}
		if n < c.rows {
			w.add(WarnCoverage, l.lane.Name, "", "%d of the run's %d decisions are missing from this lane: its scores are over the others", c.rows-n, c.rows)
		}
	}
}
