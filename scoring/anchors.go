package scoring

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/internal/stats"
	"github.com/clefbench/clefbench/snapshot"
)

// Anchors collects the labels of one scenario and says what policies earn that do not
// look at the decision (U_base, the majority), and what an oracle earns (U_top). A data
// set freezes them with the labels; a run computes them by the same sums, bit for bit.
type Anchors struct {
	task   *task
	truths *truths
	weight stats.Sum
}

// NewAnchors starts a collection for a scenario's task, of which anchors that are
// already frozen do not count.
func NewAnchors(t Task) *Anchors {
	return &Anchors{task: newTask("", t), truths: newTruths()}
}

// Add takes a label in, with the probability that its row was kept. Labels without a
// usable truth (a reward only, or an action that the matrix does not know) are left out,
// as they are of accuracy.
func (a *Anchors) Add(l *snapshot.Label, keepProb float64) {
	if tr := a.task.truthOf(l); tr != truthAction && tr != truthUtilities {
		return
	}
	w := fixedWeight(keepProb)
	a.weight.Add(w)
	a.truths.add(a.task, l, w)
}

// Freeze returns the task with the anchors of the labels; NaN where there are none.
func (a *Anchors) Freeze() Task {
	t := a.task.Task
	out := a.truths.computed(a.task, a.weight.Float())
	t.Baseline, t.BaselineAction = Number(out.base), out.baseAction
	t.Top, t.Majority = Number(out.top), Number(out.majorityShare)
	return t
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

// computed are the anchors of the labels, weight being that of the rows with a usable
// truth.
func (a *truths) computed(t *task, weight float64) anchors {
	out := anchors{base: math.NaN(), top: math.NaN(), majorityShare: math.NaN(), brier: math.NaN()}
	if weight > 0 && !a.overflow {
		out.base, out.baseAction = a.bestConstant(t, weight)
		out.top = a.oracle(t, weight)
		// Rounding must not lift them over what utilities can be.
		out.base, out.top = clamp01(out.base), clamp01(out.top)
	}
	a.baseRates(&out)
	return out
}

// anchors are the computed ones, save that frozen values of the task win.
func (a *truths) anchors(t *task, weight float64) anchors {
	out := a.computed(t, weight)
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

// constants lists what a constant policy may choose, sorted: the task's candidates, else
// every action that a label or the matrix knows; columns of the matrix that tell a
// candidate's parameter apart; and not to choose (abstain, denied), where that has a
// worth of its own. What backends chose does not enter, so that no backend moves
// another's score.
func (a *truths) constants(t *task) []string {
	set := map[string]bool{}
	for _, c := range t.Candidates {
		set[c] = true
	}
	for c := range a.excess {
		set[c] = set[c] || t.offers(c)
	}
	if len(t.Candidates) == 0 && t.utility == nil {
		for c := range a.byAction {
			set[c] = true
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
