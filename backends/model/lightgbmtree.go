package model

import (
	"math"
	"slices"

	"github.com/clefbench/clefbench/decision"
)

// Bits of LightGBM's decision_type.
const (
	lgCategorical  = 1 << 0
	lgDefaultLeft  = 1 << 1
	lgMissingShift = 2
	lgMissingMask  = 3
)

// lgTree is the lines of one tree.
type lgTree struct {
	leaves, sets                int
	feature, left, right, kind  []int64
	threshold, value            []float64
	leafCount, innerCount       []float64
	boundaries, bits            []int64
	words                       []uint32
	at, atFeature, atBoundaries lgLine
}

// tree reads one tree and returns the line that follows it.
func (r *lightGBM) tree(total int) (lgLine, error) {
	t := lgTree{leaves: -1}
	t.at = lgLine{key: "Tree", pos: decision.Position{File: r.name, Line: r.line, Column: 1}}
	for {
		l, ok := r.next()
		switch {
		case !ok:
			return l, r.errorf("the file may have been cut off", "the file ends in tree %d", len(r.e.trees))
		case l.key == "Tree" || l.key == "end of trees":
			nodes, err := t.nodes(r.features)
			r.e.trees = append(r.e.trees, tree{group: len(r.e.trees) % r.perRound, nodes: nodes})
			return l, err
		}
		if err := t.field(&l); err != nil {
			return l, err
		}
		if t.leaves > 0 && 2*t.leaves+total > maxNodes {
			return l, l.errorf("", "more than %d nodes", maxNodes)
		}
	}
}

func (t *lgTree) field(l *lgLine) (err error) {
	switch l.key {
	case "num_leaves":
		t.leaves, err = l.int(1, maxNodes/2)
	case "num_cat":
		t.sets, err = l.int(0, maxNodes)
	case "is_linear":
		if l.value != "0" {
			return l.errorf("train with linear_tree off", "leaves that are linear models are not supported")
		}
	case "split_feature":
		t.atFeature = *l
		t.feature, err = l.ints(t.leaves-1, 0, math.MaxInt32)
	case "left_child":
		t.left, err = l.ints(t.leaves-1, int64(-t.leaves), int64(t.leaves)-2)
	case "right_child":
		t.right, err = l.ints(t.leaves-1, int64(-t.leaves), int64(t.leaves)-2)
	case "decision_type":
		t.kind, err = l.ints(t.leaves-1, math.MinInt8, math.MaxUint8)
	case "threshold":
		t.threshold, err = l.floats(t.leaves - 1)
	case "leaf_value":
		t.value, err = l.floats(t.leaves)
	case "leaf_count":
		t.leafCount, err = l.floats(t.leaves)
	case "internal_count":
		t.innerCount, err = l.floats(t.leaves - 1)
	case "cat_boundaries":
		t.atBoundaries = *l
		t.boundaries, err = l.ints(t.sets+1, 0, math.MaxInt32)
	case "cat_threshold":
		t.bits, err = l.ints(-1, 0, math.MaxUint32)
	}
	return err
}

// nodes joins the lines. The inner nodes come first, then the leaves.
func (t *lgTree) nodes(features int) ([]treeNode, error) {
	inner := t.leaves - 1
	switch {
	case t.leaves < 1:
		return nil, t.at.errorf("", "the tree has no num_leaves")
	case len(t.value) != t.leaves:
		return nil, t.at.errorf("", "the tree has no leaf_value")
	case len(t.feature) != inner || len(t.left) != inner || len(t.right) != inner || len(t.kind) != inner || len(t.threshold) != inner:
		return nil, t.at.errorf("", "the tree needs split_feature, threshold, decision_type, left_child and right_child")
	}
	if err := t.checkSets(); err != nil {
		return nil, err
	}
	out := make([]treeNode, inner+t.leaves)
	for i := range inner {
		n, err := t.split(i, features)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	for k, x := range t.value {
		out[inner+k] = treeNode{left: -1, value: x}
		if t.leafCount != nil {
			out[inner+k].cover = t.leafCount[k]
		}
	}
	return out, nil
}

// checkSets turns the sets' words into what the walk reads, and holds the bounds of the category sets to the words that there are.
func (t *lgTree) checkSets() error {
	b := t.boundaries
	if t.sets == 0 {
		return nil
	}
	t.words = make([]uint32, len(t.bits))
	for i, w := range t.bits {
		t.words[i] = uint32(w)
	}
	if len(b) != t.sets+1 || b[0] != 0 || !slices.IsSorted(b) || b[t.sets] != int64(len(t.bits)) {
		l := t.atBoundaries
		if l.key == "" {
			l = t.at
		}
		return l.errorf("", "cat_boundaries must rise from 0 to the number of words in cat_threshold, %d", len(t.bits))
	}
	return nil
}

func (t *lgTree) split(i, features int) (treeNode, error) {
	kind, inner := t.kind[i], int64(t.leaves-1)
	if t.feature[i] >= int64(features) {
		return treeNode{}, t.atFeature.errorf("", "node %d splits on feature %d of %d", i, t.feature[i], features)
	}
	// A child -k is leaf k-1.
	child := func(c int64) int32 {
		if c < 0 {
			c = inner - 1 - c
		}
		return int32(c)
	}
	n := treeNode{left: child(t.left[i]), right: child(t.right[i]), feature: int32(t.feature[i]), value: t.threshold[i]}
	if t.innerCount != nil {
		n.cover = t.innerCount[i]
	}
	if kind&lgCategorical != 0 {
		k := t.threshold[i]
		if k != math.Trunc(k) || k < 0 || k >= float64(t.sets) {
			return n, t.at.errorf("", "node %d has category set %v of %d", i, k, t.sets)
		}
		n.missing, n.set = floorOut, t.words[t.boundaries[int(k)]:t.boundaries[int(k)+1]]
		return n, nil
	}
	left := kind&lgDefaultLeft != 0
	switch kind >> lgMissingShift & lgMissingMask {
	case 0:
		n.missing = missingZero
	case 1:
		n.missing = pick(left, zeroLeft, zeroRight)
	case 2:
		n.missing = pick(left, nanLeft, nanRight)
	default:
		return n, t.at.errorf("", "node %d has decision_type %d, whose missing type is unknown", i, kind)
	}
	return n, nil
}

func pick(left bool, a, b missing) missing {
	if left {
		return a
	}
	return b
}
