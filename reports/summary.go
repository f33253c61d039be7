package reports

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
)

// recordedKind is the kind of the lane that repeats what production chose.
const recordedKind = "recorded"

// summary says in plain words who leads, what was refused, on how much, and what would
// change. Each sentence stands alone.
func (b *builder) summary() []string {
	if len(b.card.Backends) == 0 {
		return []string{"No backend was scored."}
	}
	out := []string{b.leader()}
	out = append(out, b.refused()...)
	out = append(out, b.notEligible()...)
	out = append(out, b.amount())
	out = append(out, b.unanswered()...)
	return append(out, b.change()...)
}

// alerts are what makes every sentence and number doubtful, so they come first.
func (b *builder) alerts() []string {
	var out []string
	if b.card.Run.Partial {
		out = append(out, "This run was interrupted: the report covers only what was replayed until then.")
	}
	if !b.card.Dataset.Intact {
		out = append(out, "The data set is not intact: a digest was not verified or a ledger does not close.")
	}
	return out
}

// leading are the backends in the first place.
func (b *builder) leading() []*scoring.BackendScore {
	var out []*scoring.BackendScore
	for i := range b.card.Backends {
		if b.leads(b.card.Backends[i].Name) {
			out = append(out, &b.card.Backends[i])
		}
	}
	return out
}

func (b *builder) leader() string {
	lead := b.leading()
	switch len(lead) {
	case 0:
		return "No backend leads: none is eligible and has a total."
	case 1:
		return fmt.Sprintf("%s leads with %s of 100%s.", clean(lead[0].Name), score(float64(lead[0].Total.Value)), between(lead[0].Total, score))
	}
	names := make([]string, len(lead))
	for i, x := range lead {
		names[i] = fmt.Sprintf("%s (%s)", clean(x.Name), score(float64(x.Total.Value)))
	}
	return fmt.Sprintf("%s are tied in the first place: this run cannot tell them apart.", join(names))
}

// between is " (95% interval a to b)", or nothing.
func between(e scoring.Estimate, format func(float64) string) string {
	if math.IsNaN(float64(e.Lo)) || math.IsNaN(float64(e.Hi)) {
		return ""
	}
	return fmt.Sprintf(" (95%% interval %s to %s)", format(float64(e.Lo)), format(float64(e.Hi)))
}

// join is "a", "a and b", "a, b and c".
func join(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// refused lists what is NA, a sentence a reason.
func (b *builder) refused() []string {
	var reasons []string
	of := map[string][]string{}
	note := func(x *scoring.BackendScore, what string, e scoring.Estimate) {
		if e.NA == "" {
			return
		}
		key := what + "\x00" + clean(e.NA)
		if of[key] == nil {
			reasons = append(reasons, key)
		}
		of[key] = append(of[key], clean(x.Name))
	}
	for _, c := range b.categories() {
		for i := range b.card.Backends {
			note(&b.card.Backends[i], c.name, c.of(&b.card.Backends[i].Categories).Estimate)
		}
	}
	for i := range b.card.Backends {
		note(&b.card.Backends[i], "total", b.card.Backends[i].Total)
	}
	var out []string
	for _, key := range reasons {
		what, reason, _ := strings.Cut(key, "\x00")
		who := "every backend"
		if len(of[key]) < len(b.card.Backends) || len(of[key]) == 1 {
			who = join(of[key])
		}
		out = append(out, fmt.Sprintf("Refused (NA): the %s of %s: %s.", what, who, strings.TrimSuffix(reason, ".")))
	}
	return out
}

// notEligible lists who is below a floor, a sentence a reason.
func (b *builder) notEligible() []string {
	var reasons []string
	who := map[string][]string{}
	for i := range b.card.Backends {
		x := &b.card.Backends[i]
		if x.Eligible {
			continue
		}
		reason := strings.TrimSuffix(clean(ineligible(x)), ".")
		if who[reason] == nil {
			reasons = append(reasons, reason)
		}
		who[reason] = append(who[reason], clean(x.Name))
	}
	for i, reason := range reasons {
		verb := " is "
		if len(who[reason]) > 1 {
			verb = " are "
		}
		reasons[i] = join(who[reason]) + verb + reason + "."
	}
	return reasons
}

func (b *builder) amount() string {
	d := b.card.Dataset
	offered := int64(0)
	for i := range b.card.Backends {
		offered = max(offered, b.card.Backends[i].Counts.Offered)
	}
	scenarios := plural(len(b.card.ScenarioNames()), "scenario")
	through := plural(len(b.card.Backends), "backend")
	if offered < d.Snapshots { // some scenarios, or an interrupted run
		return fmt.Sprintf("%s of the data set's %s, %s, through %s.", count(offered), plural(d.Snapshots, "decision"), scenarios, through)
	}
	return fmt.Sprintf("%s in %s, %s, through %s.", plural(d.Snapshots, "decision"), plural(d.Requests, "request"), scenarios, through)
}

// unanswered says, a sentence a backend, how many decisions got no answer and why. They
// stay in the denominator, so a reader must not have to look for them.
func (b *builder) unanswered() []string {
	var out []string
	for i := range b.card.Backends {
		x := &b.card.Backends[i]
		missed := x.Counts.Offered - x.Counts.Answered
		if missed <= 0 {
			continue
		}
		out = append(out, fmt.Sprintf("%s gave no answer to %s of %s: %s.", clean(x.Name), count(missed),
			plural(x.Counts.Offered, "decision"), why(&x.Counts)))
	}
	return out
}

// why lists the commonest reasons for no answer.
func why(c *scoring.Counts) string {
	const shown = 3
	codes := slices.SortedFunc(maps.Keys(c.Reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.Reasons[b], c.Reasons[a]), cmp.Compare(a, b))
	})
	var parts []string
	if c.Timeouts > 0 {
		parts = append(parts, "timeout "+count(c.Timeouts))
	}
	for _, code := range codes {
		parts = append(parts, clean(code)+" "+count(c.Reasons[code]))
	}
	if len(parts) == 0 {
		return "no reason is given"
	}
	if len(parts) > shown {
		parts = append(parts[:shown], fmt.Sprintf("and %d more reasons", len(parts)-shown))
	}
	return strings.Join(parts, ", ")
}

// change says what switching to a leading backend would change against the record.
func (b *builder) change() []string {
	base := ""
	for i := range b.card.Backends {
		if b.card.Backends[i].Kind == recordedKind {
			base = b.card.Backends[i].Name
		}
	}
	var out []string
	for _, x := range b.leading() {
		if x.Kind == recordedKind {
			continue
		}
		if s := b.changeTo(x, base); s != "" {
			out = append(out, s)
		}
	}
	return out
}

func (b *builder) changeTo(x *scoring.BackendScore, base string) string {
	var parts []string
	if a := x.Agreement; a.NA == "" && !math.IsNaN(float64(a.Value)) {
		flipped := scoring.Estimate{Value: 1 - a.Value, Lo: 1 - a.Hi, Hi: 1 - a.Lo}
		parts = append(parts, fmt.Sprintf("choose another action than the record in %s of decisions%s",
			share(float64(flipped.Value)), between(flipped, share)))
	}
	if s := b.totalChange(x.Name, base); s != "" {
		parts = append(parts, s)
	}
	if len(parts) == 0 {
		return ""
	}
	s := fmt.Sprintf("Switching to %s would %s.", clean(x.Name), strings.Join(parts, "; it would "))
	if worse := b.worseIn(x.Name, base); len(worse) > 0 {
		s += " It is worse than the record in " + join(worse) + "."
	}
	return s
}

// totalChange is the paired difference of the totals, read in the direction record to new.
func (b *builder) totalChange(name, base string) string {
	for _, p := range b.card.Pairs {
		p, ok := towards(p, base, name)
		if !ok || p.Scenario != "" || p.Measure != scoring.MeasureTotal || math.IsNaN(float64(p.Diff)) {
			continue
		}
		e := scoring.Estimate{Lo: p.Lo, Hi: p.Hi}
		return fmt.Sprintf("change the total by %s points%s: %s", signed(score)(float64(p.Diff)), between(e, signed(score)), clean(p.Verdict))
	}
	return ""
}

// worseIn are the scenarios in which the record was shown to be better.
func (b *builder) worseIn(name, base string) []string {
	var out []string
	for _, p := range b.card.Pairs {
		if p, ok := towards(p, base, name); ok && p.Scenario != "" && p.Verdict == scoring.VerdictWorse {
			if s := clean(p.Scenario) + " (" + clean(p.Measure) + ")"; len(out) == 0 || out[len(out)-1] != s {
				out = append(out, s)
			}
		}
	}
	return out
}

// towards turns a pair so that it reads from one backend to another; false when it
// compares others.
func towards(p scoring.Pair, from, to string) (scoring.Pair, bool) {
	switch {
	case p.Base == from && p.New == to:
		return p, true
	case p.Base != to || p.New != from:
		return p, false
	}
	p.Base, p.New = p.New, p.Base
	p.Diff, p.Lo, p.Hi = -p.Diff, -p.Hi, -p.Lo
	p.OnlyBase, p.OnlyNew = p.OnlyNew, p.OnlyBase
	switch p.Verdict {
	case scoring.VerdictBetter:
		p.Verdict = scoring.VerdictWorse
	case scoring.VerdictWorse:
		p.Verdict = scoring.VerdictBetter
	}
	return p, true
}

// facts is the colophon: what was scored, with which formulas and profile.
func (b *builder) facts(o Options) []fact {
	c := b.card
	out := []fact{
		{"data set", fmt.Sprintf("%s, %s, digest %s", plural(c.Dataset.Snapshots, "snapshot"), plural(c.Dataset.Requests, "request"), dash(c.Dataset.Digest))},
		{"ledger", ledgerLine(c.Dataset.Ledger)},
	}
	if c.Profile != nil {
		out = append(out, fact{"profile", profileLine(c.Profile)})
		if c.Profile.Prices != nil {
			out = append(out, fact{"price book", fmt.Sprintf("%s, digest %s", dash(c.Profile.Prices.Currency), dash(c.Profile.Prices.Digest))})
		}
	}
	out = append(out, fact{"score version", dash(c.ScoreVersion)},
		fact{"run", fmt.Sprintf("%s, digest %s, seed %d", dash(c.Run.Path), dash(c.Run.Digest), c.Run.Seed)})
	if !o.Generated.IsZero() {
		out = append(out, fact{"generated", o.Generated.UTC().Format(time.RFC3339)})
	}
	return out
}

// ledgerLine accounts for the rows, then for the requests where they were counted.
func ledgerLine(l snapshot.Ledger) string {
	line := countsLine(snapshot.Counts{Offered: l.Offered, Written: l.Written, SampledOut: l.SampledOut, Dropped: l.Dropped})
	if l.Requests != nil {
		line += "; in requests: " + countsLine(*l.Requests)
	}
	return line
}

func countsLine(c snapshot.Counts) string {
	line := fmt.Sprintf("offered %s = written %s + sampled out %s + dropped %s",
		count(c.Offered), count(c.Written), count(c.SampledOut), count(c.DroppedTotal()))
	if c.DroppedTotal() > 0 {
		line += " (" + counted(c.Dropped) + ")"
	}
	return line
}

func profileLine(p *scoring.Profile) string {
	f := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	return fmt.Sprintf("%s: %s accuracy + %s latency + %s cost + %s auditability; latency from %s (100) to %s (0), deadline %s",
		dash(p.Name), f(p.Weights.Accuracy), f(p.Weights.Latency), f(p.Weights.Cost), f(p.Weights.Auditability),
		latency(float64(p.Latency.Good)), latency(float64(p.Latency.Bad)), latency(float64(p.Latency.Deadline)))
}

// dash is the text, or a dash where there is none.
func dash(s string) string {
	if s = clean(s); s == "" {
		return "-"
	}
	return s
}
