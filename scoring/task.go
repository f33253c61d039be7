package scoring

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/stats"
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

// offers reports whether an action may be chosen: any, unless candidates are named.
func (t *task) offers(action string) bool {
	name, _, _ := strings.Cut(action, "{")
	return len(t.Candidates) == 0 || slices.Contains(t.Candidates, action) || slices.Contains(t.Candidates, name)
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

// choice is the name under which the utility matrix knows an outcome; "" for no answer.
// A refusal without an action and an abstention count as actions named denied and
// abstain; unless the matrix names them they earn what no answer earns.
func (t *task) choice(o *snapshot.Outcome) string {
	switch o.Status {
	case decision.OK, decision.Denied:
		if o.Action == "" {
			return "denied"
		}
		return t.withParams(o)
	case decision.Abstain:
		return "abstain"
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
	case "", "abstain", "denied":
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

// maxLabels bounds how many different actions and truths a scenario may have.
const maxLabels = 1 << 16

// truths collects what the anchors U_base and U_top, the majority and the base rates
// need: weights by right action, and utility sums by action.
type truths struct {
	// byAction: weight of rows by right action, for rows whose utility follows from it.
	// right: the same for all rows with a right action.
	byAction, right map[string]stats.Sum
	// excess[a]: weight times what action a earns above the row's least; least and most:
	// weight times the least and most of the row; for rows with utilities of their own.
	excess      map[string]stats.Sum
	least, most stats.Sum
	rows        int64 // rows with utilities of their own
	overflow    bool
}

func newTruths() *truths {
	return &truths{byAction: map[string]stats.Sum{}, right: map[string]stats.Sum{}, excess: map[string]stats.Sum{}}
}

func (a *truths) add(t *task, l *snapshot.Label, w uint64) {
	if l.Action != "" {
		a.bump(a.right, l.Action, w, 1)
	}
	if len(l.Utilities) == 0 {
		a.bump(a.byAction, l.Action, w, 1)
		return
	}
	a.rows++
	lo, hi := utilityRange(l.Utilities)
	a.least.AddProduct(w, fixedUtility(lo))
	a.most.AddProduct(w, a.offeredMost(t, l, hi))
	for _, u := range l.Utilities {
		a.bump(a.excess, u.Action, w, fixedUtility(u.Utility)-fixedUtility(lo))
	}
}

func (a *truths) offeredMost(t *task, l *snapshot.Label, hi float64) uint64 {
	if len(t.Candidates) == 0 {
		return fixedUtility(hi)
	}
	lo, _ := utilityRange(l.Utilities)
	best := fixedUtility(lo)
	for _, u := range l.Utilities {
		if t.offers(u.Action) {
			best = max(best, fixedUtility(u.Utility))
		}
	}
	return best
}

func (a *truths) bump(m map[string]stats.Sum, key string, w, u uint64) {
	s, ok := m[key]
	if !ok {
		if len(m) == maxLabels {
			a.overflow = true
			return
		}
		key = strings.Clone(key) // rows are valid until the next step only
	}
	s.AddProduct(w, u)
	m[key] = s
}

// combine adds (or takes away) another collection.
func (a *truths) combine(o *truths, minus bool) {
	for _, m := range [][2]map[string]stats.Sum{{a.byAction, o.byAction}, {a.right, o.right}, {a.excess, o.excess}} {
		for k, v := range m[1] {
			s, ok := m[0][k]
			if !ok && len(m[0]) == maxLabels {
				a.overflow = true
				continue
			}
			addSum(&s, v, minus)
			m[0][k] = s
		}
	}
	addSum(&a.least, o.least, minus)
	addSum(&a.most, o.most, minus)
	if minus {
		a.rows -= o.rows
	} else {
		a.rows += o.rows
	}
	a.overflow = a.overflow || o.overflow
}

func addSum(s *stats.Sum, v stats.Sum, minus bool) {
	if minus {
		s.SubSum(v)
	} else {
		s.AddSum(v)
	}
}

// anchors are U_base and U_top of one scenario, and what goes with them.
type anchors struct {
	base, top            float64
	baseAction, majority string
	majorityShare        float64
	// brier is the Brier score of the base rates.
	brier float64
}

// anchors computes the anchors, weight being that of the labelled rows; frozen values
// of the task win.
func (a *truths) anchors(t *task, weight float64) anchors {
	out := anchors{base: math.NaN(), top: math.NaN(), majorityShare: math.NaN(), brier: math.NaN()}
	if weight > 0 && !a.overflow {
		out.base, out.baseAction = a.bestConstant(t, weight)
		out.top = a.oracle(t, weight)
	}
	a.baseRates(&out)
	if b := float64(t.Baseline); !math.IsNaN(b) {
		out.base, out.baseAction = b, t.BaselineAction
	}
	if top := float64(t.Top); !math.IsNaN(top) {
		out.top = top
	}
	return out
}

func (a *truths) bestConstant(t *task, weight float64) (u float64, action string) {
	u = math.NaN()
	truths := slices.Sorted(maps.Keys(a.byAction))
	for _, c := range a.constants(t) {
		excess := a.excess[c]
		sum := a.least.Float() + excess.Float()
		if t.utility == nil {
			// Of labels with a right action, only those that name c: labels may be many.
			right := a.byAction[c]
			sum += math.Ldexp(right.Float(), utilityBits)
		} else {
			for _, truth := range truths {
				sum += a.earned(truth, t.value(&snapshot.Label{Action: truth}, c))
			}
		}
		if v := math.Ldexp(sum/weight, -utilityBits); math.IsNaN(u) || v > u {
			u, action = v, c
		}
	}
	return u, action
}

// earned is what a utility is worth on all rows of a truth.
func (a *truths) earned(truth string, utility uint64) float64 {
	s := a.byAction[truth]
	return math.Ldexp(s.Float(), utilityBits) * math.Ldexp(float64(utility), -utilityBits)
}

// constants lists the actions that a constant policy may choose, sorted: the task's
// candidates, else every action that a label or the matrix knows. What backends chose
// does not enter, so that no backend moves another's score.
func (a *truths) constants(t *task) []string {
	set := map[string]bool{}
	for _, c := range t.Candidates {
		set[c] = true
	}
	if len(set) == 0 {
		for c := range a.excess {
			set[c] = true
		}
		for c := range a.byAction {
			set[c] = t.utility == nil || set[c]
		}
	}
	for _, row := range t.utility {
		for c := range row {
			set[c] = set[c] || t.offers(c)
		}
	}
	var out []string
	for _, c := range slices.Sorted(maps.Keys(set)) {
		if set[c] {
			out = append(out, c)
		}
	}
	return out
}

// oracle is the mean of the best utility of each row: 1 under 0/1.
func (a *truths) oracle(t *task, weight float64) float64 {
	if t.utility == nil && a.rows == 0 {
		return 1
	}
	sum := a.most.Float()
	for _, truth := range slices.Sorted(maps.Keys(a.byAction)) {
		best := uint64(1 << utilityBits)
		if t.utility != nil {
			best = t.best[truth]
		}
		sum += a.earned(truth, best)
	}
	return math.Ldexp(sum/weight, -utilityBits)
}

func (a *truths) baseRates(out *anchors) {
	keys := slices.Sorted(maps.Keys(a.right))
	total := 0.0
	for _, k := range keys {
		s := a.right[k]
		total += s.Float()
	}
	if total == 0 {
		return
	}
	out.brier = 1
	for _, k := range keys {
		s := a.right[k]
		r := s.Float() / total
		out.brier -= float64(r * r)
		if math.IsNaN(out.majorityShare) || r > out.majorityShare {
			out.majority, out.majorityShare = k, r
		}
	}
}
