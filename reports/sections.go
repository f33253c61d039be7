package reports

import (
	"math"
	"strconv"
	"strings"

	"github.com/clefbench/clefbench/scoring"
)

// categoryOf is one of the four categories, in the order of print.
type categoryOf struct {
	name   string
	weight float64
	of     func(*scoring.Categories) *scoring.Category
}

func (b *builder) categories() []categoryOf {
	var w scoring.Weights
	if b.card.Profile != nil {
		w = b.card.Profile.Weights
	}
	return []categoryOf{
		{"accuracy", w.Accuracy, func(c *scoring.Categories) *scoring.Category { return &c.Accuracy }},
		{"latency", w.Latency, func(c *scoring.Categories) *scoring.Category { return &c.Latency }},
		{"cost", w.Cost, func(c *scoring.Categories) *scoring.Category { return &c.Cost }},
		{"auditability", w.Auditability, func(c *scoring.Categories) *scoring.Category { return &c.Auditability }},
	}
}

// mainTable has a row a backend: place, total, the four categories, latency.
func (b *builder) mainTable() section {
	s := section{
		title: "Scorecard", caption: "Place, total, categories and latency by backend", refs: b.warn.run,
		lead: "Scores from 0 to 100 with 95% intervals. Backends with the same place (1=) cannot be told apart.",
		columns: []column{
			{head: "place", short: "#", key: true}, nameColumn("backend"), {head: "total", align: AlignRight},
			{head: "worst scenario", align: AlignRight, wide: true},
		},
	}
	for _, c := range b.categories() {
		s.columns = append(s.columns, column{head: c.name, short: strings.TrimSuffix(c.name, "ability"), align: AlignRight})
	}
	s.columns = append(s.columns,
		column{head: "p50", align: AlignRight}, column{head: "p99", align: AlignRight, below: true})
	for i := range b.card.Backends {
		s.rows = append(s.rows, b.mainRow(&b.card.Backends[i]))
	}
	return s
}

func (b *builder) mainRow(x *scoring.BackendScore) []cell {
	place := cell{text: b.place[x.Name]}
	name := cell{text: clean(x.Name), refs: b.warn.backend[x.Name]}
	if place.text == "" {
		place = cell{text: "-", tone: toneDim}
	} else if b.leads(x.Name) {
		name.tone = toneStrong
	}
	if !x.Eligible {
		name.sub, name.tone = "not eligible", toneBad
		name.refs = mark(append([]int(nil), name.refs...), b.notes.add(ineligible(x)))
	}
	row := []cell{place, name, b.estimate(x.Total, score), b.worst(x)}
	for _, c := range b.categories() {
		row = append(row, b.estimate(c.of(&x.Categories).Estimate, score))
	}
	return append(row, b.quantile(x.LatencyNs.P50, 0.50, x.Counts), b.quantile(x.LatencyNs.P99, 0.99, x.Counts))
}

// leads says whether a backend holds the first place, alone or tied.
func (b *builder) leads(name string) bool { return strings.TrimSuffix(b.place[name], "=") == "1" }

func ineligible(x *scoring.BackendScore) string {
	if len(x.Ineligible) == 0 {
		return "not eligible: a floor of the profile is not held"
	}
	return "not eligible: " + strings.Join(x.Ineligible, "; ")
}

// worst is the backend's lowest total of a scenario, since a total alone hides it.
func (b *builder) worst(x *scoring.BackendScore) cell {
	sc, ok := x.Scenarios[x.Worst]
	if !ok || math.IsNaN(float64(sc.Total.Value)) {
		return cell{text: "-", tone: toneDim}
	}
	return cell{text: score(float64(sc.Total.Value)), sub: clean(x.Worst)}
}

// besideTable has what is measured but not part of the total.
func (b *builder) besideTable() section {
	s := section{
		title: "Beside the score", caption: "Unscored measures by backend",
		lead: "Not part of the total. Agreement is with the record, and is no accuracy: the record may be wrong.",
		columns: []column{
			nameColumn("backend"), {head: "kind", key: true, below: true}, {head: "geometric mean", align: AlignRight},
			{head: "worst scenario", align: AlignRight, narrow: true}, {head: "action accuracy", align: AlignRight},
			{head: "agreement", align: AlignRight}, {head: b.costHead(), align: AlignRight},
			{head: "p95", align: AlignRight}, {head: "first call", align: AlignRight, below: true},
		},
	}
	for i := range b.card.Backends {
		x := &b.card.Backends[i]
		s.rows = append(s.rows, []cell{
			{text: clean(x.Name)}, {text: clean(x.Kind)}, number(x.Geometric, score), b.worst(x),
			b.estimate(x.ActionAccuracy, share), b.estimate(x.Agreement, share),
			b.estimate(x.CostPer1000, money),
			b.quantile(x.LatencyNs.P95, 0.95, x.Counts), number(x.LatencyNs.Cold, latency),
		})
	}
	return s
}

func (b *builder) costHead() string {
	if b.card.Profile == nil || b.card.Profile.Prices == nil {
		return "cost per 1,000"
	}
	return strings.TrimSpace(clean(b.card.Profile.Prices.Currency) + " per 1,000")
}

// countsTable accounts for every decision that was offered.
func (b *builder) countsTable() section {
	s := section{title: "Answers", caption: "Decisions by backend and status", lead: "Every offered decision stays in the denominator, also when it got no answer."}
	s.columns = []column{nameColumn("backend")}
	heads := []string{"offered", "answered", "denied", "abstained", "timeouts", "errors", "not replayable", "labelled", "clusters"}
	for _, h := range heads {
		s.columns = append(s.columns, column{head: h, align: AlignRight})
	}
	for i := range b.card.Backends {
		x := &b.card.Backends[i]
		c := x.Counts
		row := []cell{{text: clean(x.Name)}}
		for _, n := range []int64{c.Offered, c.Answered, c.Denied, c.Abstained, c.Timeouts, c.Errors, c.NotReplayable, c.Labelled, c.Clusters} {
			row = append(row, cell{text: count(n)})
		}
		if len(c.Reasons) > 0 {
			at := 6 // errors, or else the not-replayable beside them
			if c.Errors == 0 && c.NotReplayable > 0 {
				at = 7
			}
			row[at].refs = []int{b.notes.add("unanswered by reason: " + counted(c.Reasons))}
		}
		s.rows = append(s.rows, row)
	}
	return s
}

// scenarioTable has a row a backend, within one scenario.
func (b *builder) scenarioTable(name string) section {
	s := section{
		title: "Scenario " + clean(name), caption: "Scores and latency in " + clean(name) + " by backend", refs: b.warn.scenario[name], scenario: name, lead: b.scenarioLead(name),
		columns: []column{
			nameColumn("backend"), {head: "total", align: AlignRight}, {head: "accuracy", align: AlignRight},
			{head: "action accuracy", align: AlignRight}, {head: "majority", align: AlignRight},
			{head: "ceiling", align: AlignRight, below: true}, {head: "p50", align: AlignRight},
			{head: "p99", align: AlignRight, below: true}, {head: "answered", align: AlignRight},
			{head: "offered", align: AlignRight, below: true},
		},
	}
	for i := range b.card.Backends {
		x := &b.card.Backends[i]
		if sc, ok := x.Scenarios[name]; ok {
			s.rows = append(s.rows, b.scenarioRow(x.Name, &sc))
		}
	}
	return s
}

func (b *builder) scenarioRow(name string, sc *scoring.ScenarioScore) []cell {
	n := cell{text: clean(name)}
	if !sc.Eligible {
		n.refs = []int{b.notes.add(strings.TrimSuffix("a floor of the profile is not held in this scenario: "+strings.Join(sc.Ineligible, "; "), ": "))}
	}
	return []cell{
		n, b.estimate(sc.Total, score), b.estimate(sc.Categories.Accuracy.Estimate, score),
		b.estimate(sc.ActionAccuracy, share), number(sc.Majority, share), number(sc.Ceiling, share),
		b.quantile(sc.LatencyNs.P50, 0.50, sc.Counts), b.quantile(sc.LatencyNs.P99, 0.99, sc.Counts),
		{text: count(sc.Counts.Answered)}, {text: count(sc.Counts.Offered)},
	}
}

// scenarioLead says what the accuracies are to be compared with.
func (b *builder) scenarioLead(name string) string {
	lead := "Majority is the action accuracy of the best constant action"
	for i := range b.card.Backends {
		if sc := b.card.Backends[i].Scenarios[name]; sc.MajorityAction != "" {
			lead += ", " + clean(sc.MajorityAction)
			break
		}
	}
	lead += "; ceiling the best that anyone can reach, where it is known."
	if b.card.Profile != nil {
		if strength := clean(b.card.Profile.Tasks[name].LabelStrength); strength != "" {
			lead += " Labels: " + strength + "."
		}
	}
	return lead
}

// pairTable compares backends two by two, on what both can replay; in brief, only by
// the totals of the run.
func (b *builder) pairTable(brief bool) section {
	s := section{
		title: "Pairs", caption: "Paired differences, new minus base",
		lead: "New minus base, on the decisions that both can replay. MDE: the least difference that this run shows with 80% power. " +
			"Only base, only new: decisions that only one of the two got right.",
		columns: []column{
			nameColumn("base"), {head: "new", key: true, room: 14, below: true},
			{head: "scenario", key: true, room: 14}, {head: "measure", key: true, below: true},
			{head: "difference", align: AlignRight}, {head: "p", align: AlignRight}, {head: "MDE", align: AlignRight, below: true},
			{head: "verdict", room: 13}, {head: "pairs", align: AlignRight}, {head: "left out", align: AlignRight, below: true},
			{head: "only base", align: AlignRight}, {head: "only new", align: AlignRight, below: true},
		},
	}
	for i := range b.card.Pairs {
		if x := &b.card.Pairs[i]; !brief || x.Measure == scoring.MeasureTotal && x.Scenario == "" {
			s.rows = append(s.rows, b.pairRow(x))
		}
	}
	return s
}

func (b *builder) pairRow(x *scoring.Pair) []cell {
	format := measureFormat(x.Measure)
	scenario := cell{text: clean(x.Scenario)}
	if x.Scenario == "" {
		scenario = cell{text: "all", tone: toneDim}
	}
	diff := number(x.Diff, signed(format))
	if lo, hi := float64(x.Lo), float64(x.Hi); !math.IsNaN(lo) || !math.IsNaN(hi) {
		diff.sub = interval(lo, hi, signed(format))
	}
	verdict := cell{text: clean(x.Verdict)}
	switch x.Verdict {
	case scoring.VerdictBetter:
		verdict.tone = toneGood
	case scoring.VerdictWorse:
		verdict.tone = toneBad
	}
	return []cell{
		{text: clean(x.Base)}, {text: clean(x.New)}, scenario, {text: clean(x.Measure)}, diff,
		number(x.P, pValue), number(x.MDE, format), verdict, {text: count(x.N)}, {text: count(x.Left)},
		{text: count(x.OnlyBase)}, {text: count(x.OnlyNew)},
	}
}

// measureFormat is how a pair's measure is printed: totals as scores, utilities (0 to 1)
// with three decimals.
func measureFormat(measure string) func(float64) string {
	if measure == scoring.MeasureTotal {
		return score
	}
	return unsigned3
}

// evidenceTable says what each category rests on, over the run and in each scenario where
// that is something else.
func (b *builder) evidenceTable() section {
	s := section{
		title: "Evidence", caption: "What each category rests on",
		columns: []column{
			{head: "category", key: true}, {head: "scenario", key: true, room: 14}, {head: "weight", align: AlignRight},
			{head: "evidence", room: 30}, {head: "backends", room: 24},
		},
	}
	for _, c := range b.categories() {
		all := func(x *scoring.BackendScore) string { return c.of(&x.Categories).Evidence }
		s.rows = append(s.rows, b.evidenceRows(c, cell{text: "all", tone: toneDim}, all)...)
		for _, name := range b.card.ScenarioNames() {
			one := func(x *scoring.BackendScore) string {
				sc := x.Scenarios[name]
				if ev := c.of(&sc.Categories).Evidence; ev != all(x) {
					return ev
				}
				return ""
			}
			s.rows = append(s.rows, b.evidenceRows(c, cell{text: clean(name)}, one)...)
		}
	}
	return s
}

// evidenceRows has a row for all backends with the same evidence.
func (b *builder) evidenceRows(c categoryOf, scenario cell, of func(*scoring.BackendScore) string) [][]cell {
	var order []string
	who := map[string][]string{}
	for i := range b.card.Backends {
		x := &b.card.Backends[i]
		ev := clean(of(x))
		if ev == "" {
			continue
		}
		if who[ev] == nil {
			order = append(order, ev)
		}
		who[ev] = append(who[ev], clean(x.Name))
	}
	rows := make([][]cell, len(order))
	for i, ev := range order {
		names := cell{text: strings.Join(who[ev], ", ")}
		if len(who[ev]) == len(b.card.Backends) {
			names = cell{text: "all", tone: toneDim}
		}
		rows[i] = []cell{{text: c.name}, scenario, {text: strconv.FormatFloat(c.weight, 'f', -1, 64)}, {text: ev}, names}
	}
	return rows
}
