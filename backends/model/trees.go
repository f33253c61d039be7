package model

import (
	"math"

	"github.com/clefbench/clefbench/decision"
)

// Limits of a tree file. The numbers of features and classes are bounded so that Decide
// keeps its vectors on the stack.
const (
	maxTreeFile = 64 << 20
	maxNodes    = 1 << 22
	maxDepth    = 4096
	maxSlots    = 1024
	smallSlots  = 64
	// maxCategory bounds a category's code, and with it a set: a file of some bytes could
	// else ask for megabytes.
	maxCategory = 1 << 16
)

// ensemble is what a tree file holds, as its reader hands it over.
type ensemble struct {
	engine string
	names  []string
	// groups is the number of sums: 1 for a binary model, else one a class.
	groups int
	// base is what the sums begin with, by group.
	base []float64
	// single: inputs, leaves and sums are float32.
	single bool
	// scale is what a binary model's sum is multiplied with to give a logit.
	scale float64
	// rounds, when above 0, is what the sums are divided by.
	rounds int
	trees  []tree
}

// tree is one tree; its root is node 0.
type tree struct {
	group int
	nodes []treeNode
}

// treeNode is a node as the reader found it. A leaf has left < 0.
type treeNode struct {
	left, right int32
	feature     int32
	// value is the threshold of a numeric split, where at most it goes left, or the leaf's
	// value.
	value float64
	// set holds the categories that go left, bit by bit; nil for a numeric split.
	set     []uint32
	missing missing
	// cover is how many training rows (or how much weight) came to the node.
	cover float64
}

func (n *treeNode) isLeaf() bool { return n.left < 0 }

// missing says what an absent value is at a split.
type missing uint8

const (
	// missingZero: it is taken for the number 0, which is what the training library did
	// with it (LightGBM's missing type None).
	missingZero missing = iota
	// nanLeft and nanRight: it goes that way.
	nanLeft
	nanRight
	// zeroLeft and zeroRight: 0 is missing, too (LightGBM's missing type Zero).
	zeroLeft
	zeroRight
	// setOut and setIn are those of categories: it is outside of the set, or inside.
	setOut
	setIn
	// floorOut is setOut, with a code between -1 and 0 taken for 0 (LightGBM).
	floorOut
)

// Codes of a category slot that are no category.
const (
	codeOut = -1
	codeIn  = -2
)

// nearZero is LightGBM's bound for what counts as zero, a float32 constant there.
const nearZero = float64(float32(1e-35))

// slot returns the number that stands in the vector for x, NaN when absent. Infinities
// send it left or right of every threshold, so that the walk through the trees knows no
// missing values.
func (m missing) slot(x float64) float64 {
	switch m {
	case missingZero:
		if math.IsNaN(x) {
			return 0
		}
	case nanLeft, nanRight:
		if math.IsNaN(x) {
			return m.side(nanLeft)
		}
	case zeroLeft, zeroRight:
		if math.IsNaN(x) || math.Abs(x) <= nearZero {
			return m.side(zeroLeft)
		}
	default:
		return m.code(x)
	}
	return x
}

func (m missing) side(left missing) float64 {
	if m == left {
		return math.Inf(-1)
	}
	return math.Inf(1)
}

func (m missing) code(x float64) float64 {
	switch {
	case math.IsNaN(x) && m == setIn:
		return codeIn
	case m == floorOut && x > -1 && x < 0:
		return 0
	case x >= 0 && x < maxCategory:
		return math.Trunc(x)
	}
	return codeOut
}

// node is 16 bytes, four to a cache line. The left child is the next node.
type node struct {
	// t is the threshold, the leaf's value, or the place of the set.
	t     float64
	right uint32
	slot  uint16
	kind  nodeKind
}

type nodeKind uint8

const (
	splitNode nodeKind = iota
	leafNode
	setNode
)

// input is a feature that some split reads, bound to an attribute.
type input struct {
	// feature is the name in the tree file, name the attribute's.
	feature, name string
	// codes are those of an attribute that is text; nil for a number.
	codes map[string]float64
	// from and to bound the feature's slots.
	from, to int
}

// value is NaN when the attribute is absent, or of a type that has no number.
func (in *input) value(v decision.Value) float64 {
	if in.codes != nil {
		if v.Type() == decision.String {
			if c, ok := in.codes[v.Str()]; ok {
				return c
			}
		}
		return math.NaN()
	}
	if x, ok := asNumber(v); ok {
		return x
	}
	return math.NaN()
}

// forest is an ensemble ready to decide: all trees in one slice, each in pre-order.
type forest struct {
	nodes []node
	roots []root
	sets  [][]uint32
	// mean is the cover-weighted mean of the leaves below each node; it is for explanations.
	mean   []float64
	inputs []input
	slots  []missing

	base   []float64
	single bool
	scale  float64
	rounds float64
}

type root struct {
	at    uint32
	group uint32
}

// score fills the logits. A request that has no value for any feature is told as missing:
// what the trees say of nothing is a constant.
func (f *forest) score(attrs decision.Attrs, at []int, s *probabilities) {
	if len(f.slots) <= smallSlots {
		var v [smallSlots]float64
		f.sums(attrs, at, v[:], s)
		return
	}
	var v [maxSlots]float64
	f.sums(attrs, at, v[:], s)
}

func (f *forest) sums(attrs decision.Attrs, at []int, v []float64, s *probabilities) {
	if !f.fill(attrs, at, v) {
		s.missing = uint16(len(f.inputs))
		return
	}
	z := &s.logit
	copy(z[:], f.base)
	if f.single {
		for _, r := range f.roots {
			z[r.group] = float64(float32(z[r.group]) + float32(f.nodes[f.leaf(r.at, v)].t))
		}
	} else {
		for _, r := range f.roots {
			z[r.group] += f.nodes[f.leaf(r.at, v)].t
		}
	}
	if f.rounds > 0 {
		for k := range f.base {
			z[k] /= f.rounds
		}
	}
	if len(f.base) == 1 {
		z[0], z[1] = 0, z[0]*f.scale
	}
}

// fill writes the slots and reports whether any feature had a value.
func (f *forest) fill(attrs decision.Attrs, at []int, v []float64) bool {
	some := len(f.inputs) == 0
	for i := range f.inputs {
		in := &f.inputs[i]
		x := in.value(attrs.At(at[i]))
		if f.single {
			x = float64(float32(x))
		}
		some = some || !math.IsNaN(x)
		for k := in.from; k < in.to; k++ {
			v[k] = f.slots[k].slot(x)
		}
	}
	return some
}

// leaf walks down a tree.
func (f *forest) leaf(at uint32, v []float64) uint32 {
	for {
		n := &f.nodes[at]
		next := n.right
		switch n.kind {
		case splitNode:
			if v[n.slot] <= n.t {
				next = at + 1
			}
		case leafNode:
			return at
		default:
			if f.in(n, v[n.slot]) {
				next = at + 1
			}
		}
		at = next
	}
}

// in reports whether a category code is in the node's set.
func (f *forest) in(n *node, code float64) bool {
	if code < 0 {
		return code == codeIn
	}
	set, c := f.sets[int(n.t)], uint32(code)
	return int(c>>5) < len(set) && set[c>>5]>>(c&31)&1 != 0
}
