package scoring

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// NewTask returns a task of which nothing is known: 0/1 utility, anchors computed from
// the labels of the run.
func NewTask() Task {
	nan := Number(math.NaN())
	return Task{Baseline: nan, Top: nan, Majority: nan, Ceiling: nan}
}

// task is a Task made ready for rows.
type task struct {
	Task
	name string
	// utility in fixed point, nil under 0/1; best is the largest of each row.
	utility map[string]map[string]uint64
	best    map[string]uint64
	worst   uint64
	// params are the matrix columns of the form label{param=value}, by label.
	params map[string][]paramColumn
}

type paramColumn struct{ param, value, column string }

func newTask(name string, t Task) *task {
	c := &task{Task: t, name: name}
	// A Task that was not made by NewTask says 0 where it means unknown; U_top = 0 and a
	// majority of 0 make no sense.
	if t.Top == 0 && t.Baseline == 0 {
		c.Top, c.Baseline = Number(math.NaN()), Number(math.NaN())
	}
	if t.Majority == 0 && t.Ceiling == 0 {
		c.Majority, c.Ceiling = Number(math.NaN()), Number(math.NaN())
	}
	if t.Unanswered != nil {
		c.worst = fixedUtility(*t.Unanswered)
	}
	if t.Utility == nil {
		return c
	}
	c.utility, c.best = map[string]map[string]uint64{}, map[string]uint64{}
	for truth, row := range t.Utility {
		fixed := map[string]uint64{}
		best := c.worst
		for action, u := range row {
			fixed[action] = fixedUtility(u)
			if c.offers(action) {
				best = max(best, fixed[action])
			}
			c.addParam(action)
		}
		c.utility[truth], c.best[truth] = fixed, best
	}
	return c
}

// offers reports whether something may be chosen: any action unless candidates are
// named, and always not to choose.
func (t *task) offers(action string) bool {
	name, _, _ := strings.Cut(action, "{")
	return len(t.Candidates) == 0 || action == choiceAbstain || action == choiceDenied ||
		slices.Contains(t.Candidates, action) || slices.Contains(t.Candidates, name)
}

func (t *task) addParam(column string) {
	label, rest, ok := strings.Cut(column, "{")
	param, value, ok2 := strings.Cut(strings.TrimSuffix(rest, "}"), "=")
	if !ok || !ok2 || !strings.HasSuffix(rest, "}") {
		return
	}
	if t.params == nil {
		t.params = map[string][]paramColumn{}
	}
	col := paramColumn{param, value, column}
	if !slices.Contains(t.params[label], col) {
		t.params[label] = append(t.params[label], col)
		slices.SortFunc(t.params[label], func(a, b paramColumn) int { return strings.Compare(a.column, b.column) })
	}
}

// The names under which the utility matrix knows the ways not to choose.
const (
	choiceAbstain = "abstain"
	choiceDenied  = "denied"
)

// choice is the name under which the utility matrix knows an outcome; "" for no answer.
// A refusal without an action and an abstention count as actions named denied and
// abstain; unless the matrix names them they earn what no answer earns.
func (t *task) choice(o *snapshot.Outcome) string {
	switch o.Status {
	case decision.OK, decision.Denied:
		if o.Action == "" {
			return choiceDenied
		}
		return t.withParams(o)
	case decision.Abstain:
		return choiceAbstain
	}
	return ""
}

func (t *task) withParams(o *snapshot.Outcome) string {
	cols := t.params[o.Action]
	if len(cols) == 0 || o.Params == "" {
		return o.Action
	}
	var params map[string]any
	if json.Unmarshal([]byte(o.Params), &params) != nil {
		return o.Action
	}
	for _, c := range cols {
		if v, ok := params[c.param]; ok && textOf(v) == c.value {
			return c.column
		}
	}
	return o.Action
}

func textOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// truth is what a label says about the utility of every action.
type truth uint8

const (
	truthNone    truth = iota
	truthReward        // only what the chosen action earned
	truthUnknown       // an action that the utility matrix does not know
	truthAction        // the right action, from which utilities follow
	truthUtilities
)

func (t *task) truthOf(l *snapshot.Label) truth {
	switch {
	case l == nil:
		return truthNone
	case len(l.Utilities) > 0:
		return truthUtilities
	case l.Action == "":
		return truthReward
	case t.utility != nil && t.utility[l.Action] == nil:
		return truthUnknown
	}
	return truthAction
}

// value is the utility of a choice under a label whose truth is usable.
func (t *task) value(l *snapshot.Label, choice string) uint64 {
	if len(l.Utilities) > 0 {
		return rowUtility(l.Utilities, choice)
	}
	if t.utility != nil {
		row := t.utility[l.Action]
		if u, ok := row[choice]; ok {
			return u
		}
		label, _, _ := strings.Cut(choice, "{") // this truth does not tell parameters apart
		if u, ok := row[label]; ok {
			return u
		}
		return t.worst
	}
	switch choice {
	case l.Action:
		return 1 << utilityBits
	case "", choiceAbstain, choiceDenied:
		return t.worst
	}
	return 0
}

// rowUtility is the utility of a choice in a label's own list; one that is not listed,
// and no answer, earn the least.
func rowUtility(us []snapshot.ActionUtility, choice string) uint64 {
	lo, _ := utilityRange(us)
	for _, u := range us {
		if u.Action == choice {
			return fixedUtility(u.Utility)
		}
	}
	return fixedUtility(lo)
}

func utilityRange(us []snapshot.ActionUtility) (lo, hi float64) {
	lo, hi = us[0].Utility, us[0].Utility
	for _, u := range us[1:] {
		lo, hi = min(lo, u.Utility), max(hi, u.Utility)
	}
	return lo, hi
}
