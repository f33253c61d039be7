package scoring

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

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

	status  decision.Status
	action  string
	same    bool
	actions []string // candidates with a probability, sorted
	lo, hi  []float64

	identified, explained, complete decision.Opt[bool]
}

// addAudit takes one row of the audit sample.
func (l *laneState) addAudit(o *snapshot.Outcome) error {
	if err := checkRow(o); err != nil {
		return err
	}
	if o.Status == decision.NotReplayable {
		return nil // nothing was decided, so there is nothing to audit
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
	holds(&a.identified, o.Identified)
	holds(&a.explained, o.Explained)
	holds(&a.complete, o.Complete)
	return nil
}

// holds keeps whether a finding held in every execution that has it.
func holds(all *decision.Opt[bool], one decision.Opt[bool]) {
	if one.Set {
		*all = decision.Some(one.V && all.Or(true))
	}
}

func (a *audited) compare(o *snapshot.Outcome) {
	actions, p := probabilities(o)
	if o.Status != a.status || o.Action != a.action || !slices.Equal(actions, a.actions) {
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
	reproduced := decision.Opt[bool]{V: a.same, Set: a.repeats > 1}
	row := t.groups.Row(t.groups.Slot(a.cluster))
	for i, finding := range [4]decision.Opt[bool]{a.identified, reproduced, a.explained, a.complete} {
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
