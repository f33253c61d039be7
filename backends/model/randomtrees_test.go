package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

// plain is a random tree as a person would write it, with its own slow evaluation from
// the formats' documentation; nothing of it is shared with the readers.
type plain struct {
	feature     int
	threshold   float64
	categories  map[int]bool // those that go left (LightGBM) or right (XGBoost); nil: numeric
	missing     int          // LightGBM's missing type
	defaultLeft bool
	left, right *plain
	value       float64
}

type forestSpec struct {
	features, classes int
	depth             int
	categorical       bool
}

func randomTree(r *rand.Rand, s *forestSpec, depth int) *plain {
	if depth == 0 || r.IntN(6) == 0 {
		return &plain{value: float64(float32(r.NormFloat64() / 4))}
	}
	n := &plain{feature: r.IntN(s.features), threshold: float64(float32(math.Round(r.NormFloat64()*4) / 4)), missing: r.IntN(3), defaultLeft: r.IntN(2) == 0}
	// Categorical features are the even ones.
	if s.categorical && n.feature%2 == 0 {
		n.categories = map[int]bool{}
		for range 1 + r.IntN(5) {
			n.categories[r.IntN(70)] = true
		}
	}
	n.left, n.right = randomTree(r, s, depth-1), randomTree(r, s, depth-1)
	return n
}

// lightGBM follows LightGBM's documentation of decision_type; NaN is absent.
func (n *plain) lightGBM(x []float64) float64 {
	if n.left == nil {
		return n.value
	}
	v, left := x[n.feature], false
	switch {
	case n.categories != nil:
		left = !math.IsNaN(v) && int(v) >= 0 && n.categories[int(v)]
	case n.missing == 2 && math.IsNaN(v), n.missing == 1 && (math.IsNaN(v) || math.Abs(v) <= 1e-35):
		left = n.defaultLeft
	case math.IsNaN(v):
		left = 0 <= n.threshold
	default:
		left = v <= n.threshold
	}
	if left {
		return n.left.lightGBM(x)
	}
	return n.right.lightGBM(x)
}

// xgBoost follows XGBoost's documentation: less than in float32, the default direction
// for missing values only, listed categories to the right.
func (n *plain) xgBoost(x []float64) float32 {
	if n.left == nil {
		return float32(n.value)
	}
	v, left := float32(x[n.feature]), false
	switch {
	case v != v:
		left = n.defaultLeft
	case n.categories != nil:
		left = v < 0 || !n.categories[int(v)]
	default:
		left = v < float32(n.threshold)
	}
	if left {
		return n.left.xgBoost(x)
	}
	return n.right.xgBoost(x)
}

// list numbers inner nodes and leaves apart, in pre-order.
func (n *plain) list(inner, leaves map[*plain]int) {
	if n.left == nil {
		leaves[n] = len(leaves)
		return
	}
	inner[n] = len(inner)
	n.left.list(inner, leaves)
	n.right.list(inner, leaves)
}

// text writes the tree in LightGBM's format.
func (n *plain) text(b *strings.Builder, number int) {
	inner, leaves := map[*plain]int{}, map[*plain]int{}
	n.list(inner, leaves)
	rows := make([][]string, 5)
	for i := range rows {
		rows[i] = make([]string, len(inner))
	}
	values := make([]string, len(leaves))
	for l, i := range leaves {
		values[i] = fmt.Sprint(l.value)
	}
	child := func(c *plain) string {
		if i, ok := leaves[c]; ok {
			return fmt.Sprint(-1 - i)
		}
		return fmt.Sprint(inner[c])
	}
	boundaries, words := []string{"0"}, []string(nil)
	for i := range len(inner) {
		for s, at := range inner {
			if at != i {
				continue
			}
			kind, threshold := s.missing<<2, fmt.Sprint(s.threshold)
			if s.defaultLeft {
				kind |= 2
			}
			if s.categories != nil {
				kind, threshold = 1, fmt.Sprint(len(boundaries)-1)
				set := make([]uint32, 3)
				for c := range s.categories {
					set[c/32] |= 1 << (c % 32)
				}
				for _, w := range set {
					words = append(words, fmt.Sprint(w))
				}
				boundaries = append(boundaries, fmt.Sprint(len(words)))
			}
			for k, v := range []string{fmt.Sprint(s.feature), threshold, fmt.Sprint(kind), child(s.left), child(s.right)} {
				rows[k][i] = v
			}
		}
	}
	fmt.Fprintf(b, "Tree=%d\nnum_leaves=%d\nnum_cat=%d\n", number, len(leaves), len(boundaries)-1)
	for k, key := range []string{"split_feature", "threshold", "decision_type", "left_child", "right_child"} {
		fmt.Fprintf(b, "%s=%s\n", key, strings.Join(rows[k], " "))
	}
	fmt.Fprintf(b, "leaf_value=%s\n", strings.Join(values, " "))
	if len(boundaries) > 1 {
		fmt.Fprintf(b, "cat_boundaries=%s\ncat_threshold=%s\n", strings.Join(boundaries, " "), strings.Join(words, " "))
	}
	b.WriteString("shrinkage=0.1\n\n\n")
}

func lightGBMFile(s *forestSpec, trees []*plain, objective string) []byte {
	var b strings.Builder
	names := make([]string, s.features)
	for i := range names {
		names[i] = fmt.Sprintf("f%d", i)
	}
	fmt.Fprintf(&b, "tree\nversion=v4\nnum_class=%d\nnum_tree_per_iteration=%d\nlabel_index=0\nmax_feature_idx=%d\nobjective=%s\nfeature_names=%s\n\n",
		s.classes, s.classes, s.features-1, objective, strings.Join(names, " "))
	for i, t := range trees {
		t.text(&b, i)
	}
	b.WriteString("end of trees\n\nparameters:\n[boosting: gbdt]\nend of parameters\n\npandas_categorical:null\n")
	return []byte(b.String())
}

// json writes the tree in XGBoost's format.
func (n *plain) json(id int) string {
	var nodes []*plain
	number := map[*plain]int{}
	for queue := []*plain{n}; len(queue) > 0; queue = queue[1:] {
		number[queue[0]] = len(nodes)
		nodes = append(nodes, queue[0])
		if queue[0].left != nil {
			queue = append(queue, queue[0].left, queue[0].right)
		}
	}
	cols := make([][]string, 9)
	add := func(k int, v any) { cols[k] = append(cols[k], fmt.Sprint(v)) }
	for i, s := range nodes {
		add(0, pickText(s.left == nil, -1, number[s.left]))
		add(1, pickText(s.left == nil, -1, number[s.right]))
		add(2, s.feature)
		add(3, pickText(s.left == nil, s.value, s.threshold))
		add(4, b2i(s.defaultLeft))
		add(5, b2i(s.categories != nil))
		if s.categories != nil {
			add(6, i)
			add(7, len(cols[8]))
			for c := range 70 {
				if s.categories[c] {
					add(8, c)
				}
			}
		}
	}
	sizes := make([]string, len(cols[7]))
	for i, from := range cols[7] {
		to := len(cols[8])
		if i+1 < len(cols[7]) {
			fmt.Sscan(cols[7][i+1], &to)
		}
		var at int
		fmt.Sscan(from, &at)
		sizes[i] = fmt.Sprint(to - at)
	}
	join := func(k int) string { return strings.Join(cols[k], ",") }
	return fmt.Sprintf(`{"left_children":[%s],"right_children":[%s],"split_indices":[%s],"split_conditions":[%s],"default_left":[%s],"split_type":[%s],"categories_nodes":[%s],"categories_segments":[%s],"categories":[%s],"categories_sizes":[%s],"id":%d,"tree_param":{"num_deleted":"0","num_nodes":"%d","size_leaf_vector":"1"}}`,
		join(0), join(1), join(2), join(3), join(4), join(5), join(6), join(7), join(8), strings.Join(sizes, ","), id, len(nodes))
}

func pickText(b bool, x, y any) any {
	if b {
		return x
	}
	return y
}

func xgBoostFile(s *forestSpec, trees []*plain, objective, base string) []byte {
	names, groups, texts := make([]string, s.features), make([]string, len(trees)), make([]string, len(trees))
	for i := range names {
		names[i] = fmt.Sprintf(`"f%d"`, i)
	}
	for i, t := range trees {
		groups[i], texts[i] = fmt.Sprint(i%s.classes), t.json(i)
	}
	return fmt.Appendf(nil, `{"learner":{"attributes":{},"feature_names":[%s],"feature_types":[],"gradient_booster":{"model":{"gbtree_model_param":{"num_trees":"%d"},"tree_info":[%s],"trees":[%s]},"name":"gbtree"},"learner_model_param":{"base_score":%q,"num_class":"%d","num_feature":"%d"},"objective":{"name":%q}},"version":[3,1,0]}`,
		strings.Join(names, ","), len(trees), strings.Join(groups, ","), strings.Join(texts, ","), base, b2i(s.classes > 1)*s.classes, s.features, objective)
}

// manyTrees is an XGBoost model for measuring.
func manyTrees(t testing.TB, n, features int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	s := &forestSpec{features: features, classes: 1}
	trees := make([]*plain, n)
	for i := range trees {
		trees[i] = randomTree(r, s, 6)
	}
	return xgBoostFile(s, trees, "binary:logistic", "5E-1")
}

// randomRow has values at thresholds, zeros, missing values and odd categories.
func randomRow(r *rand.Rand, features int) []float64 {
	x := make([]float64, features)
	for i := range x {
		switch r.IntN(8) {
		case 0:
			x[i] = math.NaN()
		case 1:
			x[i] = 0
		case 2:
			x[i] = math.Round(r.NormFloat64()*4) / 4
		case 3:
			x[i] = float64(r.IntN(80))
		case 4:
			x[i] = []float64{1e-36, -1e-36, 1e-34, -0.5, -1, 1e300, 31.5, math.Nextafter(0.25, 1)}[r.IntN(8)]
		default:
			x[i] = r.NormFloat64() * 2
		}
	}
	return x
}

func randomRequests(t testing.TB, features, n int) []*decision.Request {
	r := rand.New(rand.NewPCG(3, 4))
	names := make([]string, features)
	for i := range names {
		names[i] = fmt.Sprintf("f%d", i)
	}
	first := rowRequest(t, names, make([]float64, features)) // all requests share a schema
	out := make([]*decision.Request, n)
	for i := range out {
		req := *first
		req.Attrs.Values = nil
		for _, v := range randomRow(r, features) {
			if math.IsNaN(v) {
				req.Attrs.Values = append(req.Attrs.Values, decision.Value{})
			} else {
				req.Attrs.Values = append(req.Attrs.Values, decision.DoubleValue(v))
			}
		}
		out[i] = &req
	}
	return out
}

func rowOf(req *decision.Request) []float64 {
	x := make([]float64, len(req.Attrs.Values))
	for i, v := range req.Attrs.Values {
		x[i] = v.Double()
		if v.IsNull() {
			x[i] = math.NaN()
		}
	}
	return x
}

// Random trees in both formats give what the naive evaluation gives, bit by bit.
func TestRandomTreesAgainstNaive(t *testing.T) {
	for round := range 60 {
		r := rand.New(rand.NewPCG(uint64(round), 9))
		s := &forestSpec{features: 1 + r.IntN(12), classes: []int{1, 1, 3, 5}[round%4], depth: 1 + r.IntN(7), categorical: round%3 == 0}
		trees := make([]*plain, s.classes*(1+r.IntN(6)))
		for i := range trees {
			trees[i] = randomTree(r, s, s.depth)
		}
		classes := max(2, s.classes)
		lgObjective, xgObjective := "binary sigmoid:0.7", "binary:logistic"
		if s.classes > 1 {
			lgObjective, xgObjective = fmt.Sprintf("multiclass num_class:%d", s.classes), "multi:softprob"
		}
		lg := treeModel(t, lightgbm, lightGBMFile(s, trees, lgObjective), classes, "")
		xg := treeModel(t, xgboost, xgBoostFile(s, trees, xgObjective, "[5E-1]"), classes, "")
		for _, req := range randomRequests(t, s.features, 100) {
			x := rowOf(req)
			a, b := make([]float64, s.classes), make([]float32, s.classes)
			for k := range b {
				b[k] = float32(0.5)
				if s.classes == 1 {
					b[k] = 0
				}
			}
			for i, tr := range trees {
				a[i%s.classes] += tr.lightGBM(x)
				b[i%s.classes] += tr.xgBoost(x)
			}
			checkLogits(t, lg, req, a, 0.7)
			wide := make([]float64, len(b))
			for k := range b {
				wide[k] = float64(b[k])
			}
			checkLogits(t, xg, req, wide, 1)
			if t.Failed() {
				t.Fatalf("round %d, row %v", round, x)
			}
		}
	}
}

func checkLogits(t *testing.T, m *Model, req *decision.Request, want []float64, scale float64) {
	t.Helper()
	var s probabilities
	m.score(req.Attrs, &s)
	if s.missing > 0 {
		for _, in := range m.forest.inputs {
			if v := req.Attrs.Get(in.name); !v.IsNull() {
				t.Errorf("%s is %v, and the model says that nothing is there", in.name, v)
			}
		}
		return
	}
	if len(want) == 1 {
		want = []float64{0, want[0] * scale}
	}
	for k, z := range want {
		if s.logit[k] != z {
			t.Errorf("%s: logit %d is %v, want %v", m.engine, k, s.logit[k], z)
		}
	}
}
