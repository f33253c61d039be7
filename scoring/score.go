package scoring

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// ErrEmpty reports a run without a single decision.
var ErrEmpty = errors.New("no decisions to score")

// ErrInput reports an input or a profile that cannot be used.
var ErrInput = errors.New("cannot score")

// Lane names one backend of a run.
type Lane struct {
	// Name is the user's name for it; Kind is the sort of backend (rules, flash, ...).
	Name, Kind string
}

// Input is what is scored. Audit and Cold may be nil.
type Input struct {
	// Lanes are the backends; outcomes in Rows run parallel to them.
	Lanes []Lane
	// Rows are the measured outcomes with their labels, as [Merge] yields them: rows of
	// one request stand together. One pass is made.
	Rows iter.Seq2[*Row, error]
	// Audit are the re-executions of the audit sample and Cold the first calls, of all
	// lanes and in any order.
	Audit iter.Seq2[*snapshot.Outcome, error]
	Cold  iter.Seq2[*snapshot.Outcome, error]

	Dataset DatasetInfo
	Run     RunInfo
}

// Score makes the scorecard of a run under a profile. It makes one pass over the rows
// and takes memory in proportion to lanes, pairs of lanes and scenarios, not to rows.
// What cannot be measured is NA with a reason; findings are warnings of the scorecard.
// Errors are for input that cannot be scored at all: [ErrEmpty], [ErrRow], [ErrInput],
// and those of the sequences.
func Score(in Input, p *Profile) (*Scorecard, error) {
	c, err := Collect(in, p)
	if err != nil {
		return nil, err
	}
	return c.Scorecard(in.Dataset, in.Run)
}

// Collect makes the pass of [Score] without the evaluation, so that the shards of a run
// can be collected apart, merged in any order, and give the scorecard of the whole, bit
// for bit. Rows of one request, and the executions of one audited decision, must lie in
// one shard.
func Collect(in Input, p *Profile) (*Collection, error) {
	if err := checkInput(in, p); err != nil {
		return nil, err
	}
	c := newCollection(in.Lanes, p)
	for row, err := range in.Rows {
		if err != nil {
			return nil, err
		}
		if err := c.add(row); err != nil {
			return nil, err
		}
	}
	return c, c.addPhases(in)
}

// Scorecard evaluates what was collected. The error is [ErrEmpty] when that is nothing.
func (c *Collection) Scorecard(dataset DatasetInfo, run RunInfo) (*Scorecard, error) {
	if c.rows == 0 {
		return nil, ErrEmpty
	}
	return c.scorecard(dataset, run), nil
}

// Merge adds the collection of other rows of the same lanes under the same profile; o
// must not be used afterwards.
func (c *Collection) Merge(o *Collection) error {
	if len(c.lanes) != len(o.lanes) {
		return fmt.Errorf("%w: %d lanes and %d", ErrInput, len(c.lanes), len(o.lanes))
	}
	for i, l := range c.lanes {
		if l.lane != o.lanes[i].lane || c.profile != o.profile {
			return fmt.Errorf("%w: lane %q and %q, or two profiles", ErrInput, l.lane.Name, o.lanes[i].lane.Name)
		}
	}
	for i, l := range c.lanes {
		mergeTallies(l.tallies, o.lanes[i].tallies)
		l.cold.merge(&o.lanes[i].cold)
	}
	for i, p := range c.pairs {
		p.merge(o.pairs[i])
	}
	c.rows += o.rows
	return nil
}

func mergeTallies(to, from map[string]*tally) {
	for name, t := range from {
		if to[name] == nil {
			to[name] = t
		} else {
			to[name].merge(t)
		}
	}
}

func (p *pairState) merge(o *pairState) {
	for name, from := range o.scenarios {
		to := p.scenarios[name]
		if to == nil {
			p.scenarios[name] = from
			continue
		}
		to.common += from.common
		to.leftRows += from.leftRows
		to.onlyBase += from.onlyBase
		to.onlyNew += from.onlyNew
		for side, t := range from.left {
			if to.left[side] == nil {
				to.left[side] = t
			} else if t != nil {
				to.left[side].merge(t)
			}
		}
	}
}

func checkInput(in Input, p *Profile) error {
	seen := map[string]bool{}
	for _, l := range in.Lanes {
		if l.Name == "" || seen[l.Name] {
			return fmt.Errorf("%w: lane name %q is empty or stands twice", ErrInput, l.Name)
		}
		seen[l.Name] = true
	}
	switch {
	case len(in.Lanes) == 0:
		return fmt.Errorf("%w: no lanes", ErrInput)
	case in.Rows == nil:
		return fmt.Errorf("%w: no rows", ErrInput)
	case p == nil:
		return fmt.Errorf("%w: no profile", ErrInput)
	}
	if err := p.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	return nil
}

// pairState is what is kept about two lanes: per scenario, the rows that only one of
// them could be asked, and the discordant decisions.
type pairState struct {
	base, new int
	scenarios map[string]*pairTally
}

type pairTally struct {
	// left holds, for base and new, the lane's rows that the pair does not use; nil when
	// there are none, which is the ordinary case and costs nothing.
	left [2]*tally
	// common counts the pair's rows, leftRows the rows that one of the two lacks.
	common, leftRows  int64
	onlyBase, onlyNew int64
}

// Collection is what one pass over rows keeps: integer sums by lane, scenario and group
// of clusters. See [Collect].
type Collection struct {
	profile *Profile
	tasks   map[string]*task
	lanes   []*laneState
	pairs   []*pairState
	rows    int64

	obs   []observation
	there []bool
}

func newCollection(lanes []Lane, p *Profile) *Collection {
	c := &Collection{
		profile: p, tasks: map[string]*task{},
		obs: make([]observation, len(lanes)), there: make([]bool, len(lanes)),
	}
	for name, t := range p.Tasks {
		c.tasks[name] = newTask(name, t)
	}
	for i, l := range lanes {
		c.lanes = append(c.lanes, newLaneState(l, p, c.tasks))
		for j := range i {
			c.pairs = append(c.pairs, &pairState{base: j, new: i, scenarios: map[string]*pairTally{}})
		}
	}
	// By base, then new: the order in which pairs are printed.
	slices.SortFunc(c.pairs, func(a, b *pairState) int { return (a.base-b.base)*len(lanes) + a.new - b.new })
	return c
}

func (c *Collection) add(row *Row) error {
	if len(row.Outcomes) != len(c.lanes) {
		return fmt.Errorf("%w: %d outcomes for %d lanes", ErrInput, len(row.Outcomes), len(c.lanes))
	}
	scenario := ""
	for i, o := range row.Outcomes {
		if c.there[i] = o != nil; o == nil {
			continue
		}
		if scenario != "" && o.Scenario != scenario {
			return fmt.Errorf("%s row %d: %w: scenario %q and %q", o.Ref.Segment, o.Ref.Row, ErrMismatch, scenario, o.Scenario)
		}
		scenario = o.Scenario
		if err := c.addLane(i, row, o); err != nil {
			return err
		}
	}
	if scenario == "" {
		return nil
	}
	c.rows++
	for _, p := range c.pairs {
		c.addPair(p, scenario)
	}
	return nil
}

func (c *Collection) addLane(i int, row *Row, o *snapshot.Outcome) error {
	l := c.lanes[i]
	// One that names no backend is hand-made: files refuse it (snapshot.Outcome.Validate).
	if o.Backend != l.lane.Name {
		return fmt.Errorf("%s row %d: %w: an outcome of backend %q in lane %q", o.Ref.Segment, o.Ref.Row, ErrRow, o.Backend, l.lane.Name)
	}
	t, err := l.tallyOf(o.Scenario)
	if err != nil {
		return err
	}
	if err := l.observe(row, o, t.task, &c.obs[i]); err != nil {
		return err
	}
	t.add(&c.obs[i])
	return nil
}

func (c *Collection) addPair(p *pairState, scenario string) {
	if !c.there[p.base] && !c.there[p.new] {
		return
	}
	t := p.scenarios[scenario]
	if t == nil {
		t = &pairTally{}
		p.scenarios[taskOf(c.tasks, scenario).name] = t
	}
	base, next := &c.obs[p.base], &c.obs[p.new]
	if c.there[p.base] && c.there[p.new] && base.status != decision.NotReplayable && next.status != decision.NotReplayable {
		t.common++
		if base.right != next.right {
			if base.right {
				t.onlyBase++
			} else {
				t.onlyNew++
			}
		}
		return
	}
	t.leftRows++
	for side, lane := range [2]int{p.base, p.new} {
		if !c.there[lane] {
			continue
		}
		if t.left[side] == nil {
			l := c.lanes[lane]
			t.left[side] = newTally(taskOf(c.tasks, scenario), len(l.meters.list))
		}
		t.left[side].add(&c.obs[lane])
	}
}

// addPhases takes the audit sample and the cold calls.
func (c *Collection) addPhases(in Input) error {
	byName := map[string]*laneState{}
	for _, l := range c.lanes {
		byName[l.lane.Name] = l
	}
	err := c.each(in.Audit, byName, (*laneState).addAudit)
	if err != nil {
		return err
	}
	err = c.each(in.Cold, byName, func(l *laneState, o *snapshot.Outcome) error {
		l.cold.add(o)
		return nil
	})
	if err != nil {
		return err
	}
	for _, l := range c.lanes {
		if err := l.settleAudit(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Collection) each(seq iter.Seq2[*snapshot.Outcome, error], byName map[string]*laneState, f func(*laneState, *snapshot.Outcome) error) error {
	if seq == nil {
		return nil
	}
	for o, err := range seq {
		if err != nil {
			return err
		}
		l := byName[o.Backend]
		if l == nil {
			return fmt.Errorf("%s row %d: %w: backend %q is not a lane", o.Ref.Segment, o.Ref.Row, ErrRow, o.Backend)
		}
		if err := f(l, o); err != nil {
			return err
		}
	}
	return nil
}

// scenarios lists the scenarios of a lane, sorted.
func (l *laneState) scenarios() []string { return slices.Sorted(maps.Keys(l.tallies)) }
