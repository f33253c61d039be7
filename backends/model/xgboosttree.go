package model

import (
	"encoding/json"
	"math"
	"strconv"
)

// xgTree is a tree as it stands in the file. Thresholds and leaves are read as float32,
// which is what XGBoost wrote.
type xgTree struct {
	Left     []int32   `json:"left_children"`
	Right    []int32   `json:"right_children"`
	Feature  []int32   `json:"split_indices"`
	Value    []xgFloat `json:"split_conditions"`
	Default  []flag    `json:"default_left"`
	Kind     []flag    `json:"split_type"`
	Cover    []float32 `json:"sum_hessian"`
	Cats     []int32   `json:"categories"`
	CatNodes []int32   `json:"categories_nodes"`
	CatFrom  []int64   `json:"categories_segments"`
	CatSize  []int64   `json:"categories_sizes"`
	Param    struct {
		Vector string `json:"size_leaf_vector"`
	} `json:"tree_param"`
}

// flag is 0 or 1, or false or true: versions differ.
type flag bool

func (f *flag) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "0", "false":
		*f = false
	case "1", "true":
		*f = true
	default:
		return &json.UnmarshalTypeError{Value: "value other than 0, 1, false and true"}
	}
	return nil
}

func (r *xgBoost) tree(i int) ([]treeNode, error) {
	at, path := r.here(), "trees["+strconv.Itoa(i)+"]"
	var t xgTree
	if err := r.value(path, &t); err != nil {
		return nil, err
	}
	nodes, fault := t.nodes()
	if fault != "" {
		return nil, r.errorf(at, "", "%s: %s", path, fault)
	}
	if r.total += len(nodes); r.total > maxNodes {
		return nil, r.errorf(at, "", "more than %d nodes", maxNodes)
	}
	for i := range nodes {
		if r.words += len(nodes[i].set); r.words > maxNodes {
			return nil, r.errorf(at, "", "the sets of categories need more than %d words", maxNodes)
		}
	}
	return nodes, nil
}

// nodes joins the arrays, or says in words what is wrong.
func (t *xgTree) nodes() ([]treeNode, string) {
	n := len(t.Left)
	switch {
	case n == 0:
		return nil, "a tree without nodes"
	case len(t.Right) != n || len(t.Feature) != n || len(t.Value) != n || len(t.Default) != n:
		return nil, "left_children, right_children, split_indices, split_conditions and default_left differ in length"
	case len(t.Kind) != n && len(t.Kind) != 0 || len(t.Cover) != n && len(t.Cover) != 0:
		return nil, "split_type and sum_hessian must have a number for each node"
	case t.Param.Vector != "" && t.Param.Vector != "0" && t.Param.Vector != "1":
		return nil, "leaves that hold vectors are not supported: train with multi_strategy one_output_per_tree"
	}
	sets, fault := t.sets()
	if fault != "" {
		return nil, fault
	}
	out := make([]treeNode, n)
	for i := range out {
		if fault := t.node(i, sets, &out[i]); fault != "" {
			return nil, "node " + strconv.Itoa(i) + ": " + fault
		}
	}
	return out, ""
}

func (t *xgTree) node(i int, sets map[int32][]uint32, n *treeNode) string {
	*n = treeNode{left: t.Left[i], right: t.Right[i], feature: t.Feature[i], value: float64(t.Value[i])}
	if len(t.Cover) > 0 {
		n.cover = float64(t.Cover[i])
	}
	categorical := len(t.Kind) > 0 && bool(t.Kind[i])
	if math.IsNaN(n.value) && (n.left == -1 || !categorical) {
		return "split_conditions is NaN, which is for categories only"
	}
	if n.left == -1 {
		return ""
	}
	if n.left < 0 || n.right < 0 || n.feature < 0 {
		return "a child or feature below 0"
	}
	set, ok := sets[int32(i)]
	if ok != categorical {
		return "split_type and categories_nodes disagree"
	}
	left := bool(t.Default[i])
	if !categorical {
		// x < t in float32 is x <= the number before t.
		n.value, n.missing = math.Nextafter(n.value, math.Inf(-1)), pick(left, nanLeft, nanRight)
		return ""
	}
	// XGBoost lists the categories that go right; here a set goes left.
	n.left, n.right, n.set = n.right, n.left, set
	n.missing = pick(left, setOut, setIn)
	return ""
}

// sets gathers the categories by node.
func (t *xgTree) sets() (map[int32][]uint32, string) {
	k := len(t.CatNodes)
	if len(t.CatFrom) != k || len(t.CatSize) != k {
		return nil, "categories_nodes, categories_segments and categories_sizes differ in length"
	}
	out := make(map[int32][]uint32, k)
	for j, node := range t.CatNodes {
		from, size := t.CatFrom[j], t.CatSize[j]
		if from < 0 || size < 0 || from > int64(len(t.Cats)) || size > int64(len(t.Cats))-from || out[node] != nil {
			return nil, "categories_segments and categories_sizes lead out of categories"
		}
		set := []uint32{}
		for _, c := range t.Cats[from : from+size] {
			if c < 0 || c >= maxCategory {
				return nil, "category " + strconv.Itoa(int(c)) + " is outside of 0 to " + strconv.Itoa(maxCategory-1)
			}
			for int(c>>5) >= len(set) {
				set = append(set, 0)
			}
			set[c>>5] |= 1 << (c & 31)
		}
		out[node] = set
	}
	return out, ""
}
