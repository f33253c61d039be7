package scoring

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/stats"
	"github.com/clefbench/clefbench/snapshot"
)

// ErrRow reports an outcome that cannot be scored.
var ErrRow = errors.New("row cannot be scored")

// maxScenarios bounds the scenarios of a run: each has tables of its own.
const maxScenarios = 1000

// laneState is what is kept about one lane while rows stream by.
type laneState struct {
	lane    Lane
	profile *Profile
	meters  meters
	tasks   map[string]*task
	tallies map[string]*tally

	// last saves map look-ups: rows of a scenario tend to stand together.
	last *tally
	// request is that of the row before; any says that there was one.
	request decision.ID
	any     bool
	// unpriced: that request is a failed call that could not be priced.
	unpriced bool

	audit map[decision.ID]*audited
	cold  coldCall
}

func newLaneState(lane Lane, p *Profile, tasks map[string]*task) *laneState {
	return &laneState{
		lane: lane, profile: p, meters: newMeters(p.Prices, lane), tasks: tasks,
		tallies: map[string]*tally{}, audit: map[decision.ID]*audited{},
	}
}

// tallyOf returns the lane's tally of a scenario.
func (l *laneState) tallyOf(scenario string) (*tally, error) {
	if l.last != nil && l.last.task.name == scenario {
		return l.last, nil
	}
	t := l.tallies[scenario]
	if t == nil {
		if len(l.tallies) == maxScenarios {
			return nil, fmt.Errorf("%w: more than %d scenarios", ErrRow, maxScenarios)
		}
		t = newTally(taskOf(l.tasks, scenario), len(l.meters.list))
		l.tallies[t.task.name] = t
	}
	l.last = t
	return t, nil
}

// taskOf returns the task of a scenario; its name is a copy, because rows are valid
// until the next step only.
func taskOf(tasks map[string]*task, scenario string) *task {
	t := tasks[scenario]
	if t == nil {
		t = newTask(strings.Clone(scenario), NewTask())
		tasks[t.name] = t
	}
	return t
}

func checkRow(o *snapshot.Outcome) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s row %d, backend %s: %w: %s", o.Ref.Segment, o.Ref.Row, o.Backend, ErrRow, fmt.Sprintf(format, args...))
	}
	switch {
	case o.Scenario == "":
		return bad("no scenario")
	case o.Status == decision.StatusNone || o.Status > decision.NotReplayable:
		return bad("status %v", o.Status)
	case !(o.KeepProb > 0 && o.KeepProb <= 1):
		return bad("keep_prob %v is not in (0,1]", o.KeepProb)
	case o.KeepProb < math.Ldexp(1, -maxWeightLog):
		return bad("keep_prob %v is below 2^-%d", o.KeepProb, maxWeightLog)
	}
	return nil
}

// observe reads one row of the lane.
func (l *laneState) observe(row *Row, o *snapshot.Outcome, t *task, obs *observation) error {
	if err := checkRow(o); err != nil {
		return err
	}
	if o.Phase != "" && o.Phase != snapshot.PhaseMeasured {
		return fmt.Errorf("%s row %d, backend %s: %w: phase %s among the measured rows", o.Ref.Segment, o.Ref.Row, o.Backend, ErrRow, o.Phase)
	}
	first := !l.any || o.RequestID != l.request
	l.any, l.request = true, o.RequestID
	*obs = observation{
		row: row, cluster: clusterOf(l.profile.Seed, o), weight: fixedWeight(o.KeepProb),
		status: o.Status, choice: t.choice(o), chosen: chosenName(o), first: first,
		truth: t.truthOf(row.Label), reason: reasonOf(o),
		recorded: o.Recorded != "", agreed: o.Recorded != "" && o.Recorded == o.Action,
	}
	l.readTruth(o, t, obs)
	if answered := o.Status.Answered(); answered && o.Latency.Set {
		obs.timed, obs.latency = true, int64(o.Latency.V)
		obs.inTime = l.profile.Latency.Deadline <= 0 || o.Latency.V <= l.profile.Latency.Deadline
	}
	l.readCharge(o, obs)
	return nil
}

// readCharge prices a row. A failed call that cannot be priced is charged nothing, on
// none of its rows: it is taken to cost what the others cost, all of it.
func (l *laneState) readCharge(o *snapshot.Outcome, obs *observation) {
	if obs.first {
		l.unpriced = false
	}
	if o.Status == decision.NotReplayable || l.meters.na != "" || l.unpriced {
		return
	}
	obs.charge = l.meters.read(o, obs.first)
	if obs.first && obs.charge.unknown != "" && !o.Status.Answered() {
		l.unpriced = true
		obs.charge = charge{unknown: obs.charge.unknown}
	}
}

func (l *laneState) readTruth(o *snapshot.Outcome, t *task, obs *observation) {
	if obs.truth != truthAction && obs.truth != truthUtilities {
		return
	}
	label := obs.row.Label
	obs.utility = t.value(label, obs.choice)
	if label.Action == "" || obs.choice == "" {
		return
	}
	obs.right = o.Action == label.Action || obs.choice == label.Action
	obs.brier, obs.forecast = halfBrier(o, label.Action, t.Candidates)
}

// clusterOf hashes what rows are dependent through: the entity, else the request.
func clusterOf(seed uint64, o *snapshot.Outcome) uint64 {
	if o.Entity.Set {
		return stats.Hash(seed, o.Entity.V[:])
	}
	return stats.Hash(seed, o.RequestID[:])
}

// chosenName is the column of the confusion table.
func chosenName(o *snapshot.Outcome) string {
	if o.Action != "" && (o.Status == decision.OK || o.Status == decision.Denied) {
		return o.Action
	}
	switch o.Status {
	case decision.Denied:
		return "(denied)"
	case decision.Abstain:
		return "(abstain)"
	case decision.Timeout:
		return "(timeout)"
	case decision.NotReplayable:
		return "(not-replayable)"
	}
	return "(error)"
}

func reasonOf(o *snapshot.Outcome) string {
	if o.Status != decision.Error && o.Status != decision.NotReplayable {
		return ""
	}
	if o.ErrorCode == "" {
		return "unspecified"
	}
	return o.ErrorCode
}

// sumTolerance is how far probabilities may sum from 1 and still be a forecast.
const sumTolerance = 0.01

// halfBrier is half the Brier score (a number in [0,1]) of the candidates'
// probabilities; ok is false unless every candidate has one and they sum to 1. A right
// action that is not among the candidates had probability 0.
func halfBrier(o *snapshot.Outcome, right string, candidates []string) (score uint64, ok bool) {
	if len(o.Candidates) == 0 || !covers(o.Candidates, candidates) {
		return 0, false
	}
	sum, brier, seen := 0.0, 0.0, false
	for _, c := range o.Candidates {
		p := c.Probability.V
		if !c.Probability.Set || !(p >= 0 && p <= 1) {
			return 0, false
		}
		y := 0.0
		if c.Action == right {
			y, seen = 1, true
		}
		sum += p
		brier += float64((p - y) * (p - y))
	}
	if !seen {
		brier++
	}
	if math.Abs(sum-1) > sumTolerance {
		return 0, false
	}
	return fixedUtility(min(brier/2, 1)), true
}

func covers(have []decision.Candidate, want []string) bool {
next:
	for _, w := range want {
		for i := range have {
			if have[i].Action == w {
				continue next
			}
		}
		return false
	}
	return true
}

// coldCall is a lane's first call: the earliest cold row by block, place and snapshot.
type coldCall struct {
	block   int32
	ref     snapshot.Ref
	latency time.Duration
	timed   bool
	any     bool
}

func (c *coldCall) add(o *snapshot.Outcome) {
	ref := snapshot.Ref{Segment: strings.Clone(o.Ref.Segment), Row: o.Ref.Row}
	c.merge(&coldCall{block: o.Block, ref: ref, latency: o.Latency.V, timed: o.Latency.Set, any: true})
}

func (c *coldCall) merge(o *coldCall) {
	if o.any && (!c.any || o.block < c.block || (o.block == c.block && compareRefs(o.ref, c.ref) < 0)) {
		*c = *o
	}
}

// maxAudited bounds the audit sample of a lane: each of its decisions is held in
// memory until its repeats have come.
const maxAudited = 1 << 20

// probTolerance is how far the probabilities of two executions may lie apart and still
// count as reproduced: what the order of float additions does, and no more.
const probTolerance = 1e-6

// auditColumns are the questions that audit rows answer, as indices of auditQuestions,
// in the order of the tally's columns. Faithfulness is not measured by these rows, and
// intactness is a fact of the data set.
func auditColumns() [4]int { return [4]int{0, 1, 2, 4} }

// audited is one decision of the audit sample with all its executions. Rows may come
// in any order, so everything in it commutes.
type audited struct {
	scenario string
	cluster  uint64
	weight   uint64
	repeats  int

	// answered: some execution was; same: all were, and with the same answer.
	answered, same bool
	status         decision.Status
	action         string
	actions        []string // candidates with a probability, sorted
	lo, hi         []float64

	identified, explained, complete decision.Opt[bool]
}

// addAudit takes one row of the audit sample.
func (l *laneState) addAudit(o *snapshot.Outcome) error {
	if err := checkRow(o); err != nil {
		return err
	}
	a := l.audit[o.ID]
	if a == nil {
		if len(l.audit) == maxAudited {
			return fmt.Errorf("%w: more than %d audited decisions of backend %s", ErrRow, maxAudited, l.lane.Name)
		}
		a = &audited{
			scenario: strings.Clone(o.Scenario), cluster: clusterOf(l.profile.Seed, o), weight: fixedWeight(o.KeepProb),
			status: o.Status, action: strings.Clone(o.Action), same: true,
		}
		a.actions, a.lo = probabilities(o)
		a.hi = slices.Clone(a.lo)
		l.audit[o.ID] = a
	}
	a.repeats++
	a.compare(o)
	answered := o.Status.Answered()
	a.answered = a.answered || answered
	holds(&a.identified, o.Identified, answered)
	holds(&a.explained, o.Explained, answered)
	holds(&a.complete, o.Complete, answered)
	return nil
}

// holds keeps whether a finding held in every execution that has it; of an execution
// without an answer nothing holds.
func holds(all *decision.Opt[bool], one decision.Opt[bool], answered bool) {
	if one.Set {
		*all = decision.Some(one.V && answered && all.Or(true))
	}
}

// findings returns q1, q2, q3 and q5. A decision that never got an answer, also because
// it could not be replayed, has none of what an answer is audited for: were it left out,
// or were equal errors reproducible, a dead backend would pass.
func (a *audited) findings() [4]decision.Opt[bool] {
	out := [4]decision.Opt[bool]{a.identified, {V: a.same, Set: a.repeats > 1}, a.explained, a.complete}
	if a.answered {
		return out
	}
	for i := range out {
		// Executed once, it says nothing about reproducibility, answer or not.
		out[i] = decision.Opt[bool]{Set: i != 1 || a.repeats > 1}
	}
	return out
}

func (a *audited) compare(o *snapshot.Outcome) {
	actions, p := probabilities(o)
	if !o.Status.Answered() || o.Status != a.status || o.Action != a.action || !slices.Equal(actions, a.actions) {
		a.same = false
		return
	}
	for i := range p {
		a.lo[i], a.hi[i] = min(a.lo[i], p[i]), max(a.hi[i], p[i])
		if a.hi[i]-a.lo[i] > probTolerance {
			a.same = false
		}
	}
}

// probabilities returns the candidates that have a probability, by name.
func probabilities(o *snapshot.Outcome) (actions []string, p []float64) {
	cs := make([]decision.Candidate, 0, len(o.Candidates))
	for _, c := range o.Candidates {
		if c.Probability.Set {
			cs = append(cs, c)
		}
	}
	slices.SortFunc(cs, func(a, b decision.Candidate) int { return strings.Compare(a.Action, b.Action) })
	for _, c := range cs {
		actions, p = append(actions, strings.Clone(c.Action)), append(p, c.Probability.V)
	}
	return actions, p
}

// settleAudit adds the audited decisions to the tallies, once all rows have come.
func (l *laneState) settleAudit() error {
	for _, a := range l.audit {
		t, err := l.tallyOf(a.scenario)
		if err != nil {
			return err
		}
		t.addAudited(a)
	}
	l.audit = nil
	return nil
}

func (t *tally) addAudited(a *audited) {
	t.audited++
	t.auditClusters.Add(a.cluster)
	row := t.groups.Row(t.groups.Slot(a.cluster))
	for i, finding := range a.findings() {
		if !finding.Set {
			continue
		}
		row[colAudit+2*i].Add(a.weight)
		t.auditSquares[i].AddProduct(a.weight, a.weight)
		if finding.V {
			row[colAudit+2*i+1].Add(a.weight)
		}
	}
}
