package model

import (
	"math"
	"math/bits"
	"slices"

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
	// encoded is where the file says that the training library made codes of categories
	// itself; "" when it does not. pandas holds LightGBM's lists of them.
	encoded string
	pandas  [][]string
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
	codeOut = math.MaxUint64 - iota
	codeIn
)

// nearZero is LightGBM's bound for what counts as zero, a float32 constant there.
const nearZero = float64(float32(1e-35))

// slot returns what stands in the vector for x, NaN when absent: one more than a category's
// code, or the number's [order]; never 0. Infinities send what is missing left or right of every threshold, so
// that the walk through the trees knows no missing values.
func (m missing) slot(x float64) uint64 {
	switch m {
	case missingZero:
		if math.IsNaN(x) {
			x = 0
		}
	case nanLeft, nanRight:
		if math.IsNaN(x) {
			x = m.side(nanLeft)
		}
	case zeroLeft, zeroRight:
		if math.IsNaN(x) || math.Abs(x) <= nearZero {
			x = m.side(zeroLeft)
		}
	default:
		return m.code(x)
	}
	return order(x)
}

func (m missing) side(left missing) float64 {
	if m == left {
		return math.Inf(-1)
	}
	return math.Inf(1)
}

func (m missing) code(x float64) uint64 {
	switch {
	case math.IsNaN(x) && m == setIn:
		return codeIn
	case m == floorOut && x > -1 && x < 0:
		return 1
	case x >= 0 && x < maxCategory:
		return 1 + uint64(x)
	}
	return codeOut
}

// order maps numbers to integers above 0 that compare as they do; both zeros are one. NaN
// has no place in it.
func order(x float64) uint64 {
	b := math.Float64bits(x + 0) // -0 becomes 0
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

// node is 16 bytes, four to a cache line. The left child is the next node. A leaf is a
// split that no number passes and whose right child is itself: the walk stands still
// there, without asking what it is.
type node struct {
	// t is the order of the threshold, 0 in a leaf, or the place of the set.
	t uint64
	// skip is how many nodes stand between this one and its right child; -1 in a leaf.
	skip uint32
	slot uint16
	// set marks a split on categories.
	set bool
}

// input is a feature that some split reads, bound to an attribute.
type input struct {
	// feature is the name in the tree file, name the attribute's.
	feature, name string
	// codes are those of an attribute that is text, numbers of one that is a number, for
	// listed categories; nil where a number is its own code.
	codes   map[string]float64
	numbers map[float64]float64
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
	x, ok := asNumber(v)
	if ok && in.numbers != nil {
		x, ok = in.numbers[x]
	}
	if !ok {
		return math.NaN()
	}
	return x
}

// forest is an ensemble ready to decide: all trees in one slice, each in pre-order.
type forest struct {
	nodes []node
	roots []root
	sets  [][]uint32
	// mean is the cover-weighted mean of the leaves below each node: of a leaf its value, of
	// others what explanations need.
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
		var v [smallSlots]uint64
		f.sums(attrs, at, v[:], s)
		return
	}
	var v [maxSlots]uint64
	f.sums(attrs, at, v[:], s)
}

func (f *forest) sums(attrs decision.Attrs, at []int, v []uint64, s *probabilities) {
	if !f.fill(attrs, at, v) {
		s.missing = uint16(len(f.inputs))
		return
	}
	z := &s.logit
	copy(z[:], f.base)
	roots := f.roots
	if len(f.sets) == 0 {
		for ; len(roots) >= 4; roots = roots[4:] {
			at := f.leaves([4]uint32{roots[0].at, roots[1].at, roots[2].at, roots[3].at}, v)
			for i, r := range roots[:4] {
				f.add(&z[r.group], f.mean[at[i]])
			}
		}
	}
	for _, r := range roots {
		f.add(&z[r.group], f.mean[f.leaf(r.at, v)])
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
func (f *forest) fill(attrs decision.Attrs, at []int, v []uint64) bool {
	some := len(f.inputs) == 0
	v[0] = 1 // leaves look there, also when nothing else does
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

// add adds a leaf to a sum, in the precision of the library that trained it.
func (f *forest) add(sum *float64, leaf float64) {
	if f.single {
		*sum = float64(float32(*sum) + float32(leaf))
	} else {
		*sum += leaf
	}
}

// leaves walks down four trees without categories at once. Which way a split goes is
// anybody's guess, and a processor that guesses wrong loses more than the walk costs: so
// a step has no branch, and four chains of steps run beside each other.
func (f *forest) leaves(at [4]uint32, v []uint64) [4]uint32 {
	a, b, c, d := at[0], at[1], at[2], at[3]
	for nodes := f.nodes; ; {
		na, nb, nc, nd := &nodes[a], &nodes[b], &nodes[c], &nodes[d]
		_, ra := bits.Sub64(na.t, v[na.slot], 0) // 1 when above the threshold
		_, rb := bits.Sub64(nb.t, v[nb.slot], 0)
		_, rc := bits.Sub64(nc.t, v[nc.slot], 0)
		_, rd := bits.Sub64(nd.t, v[nd.slot], 0)
		ma, mb := 1+na.skip&-uint32(ra), 1+nb.skip&-uint32(rb)
		mc, md := 1+nc.skip&-uint32(rc), 1+nd.skip&-uint32(rd)
		if ma|mb|mc|md == 0 {
			return [4]uint32{a, b, c, d}
		}
		a, b, c, d = a+ma, b+mb, c+mc, d+md
	}
}

// leaf walks down one tree.
func (f *forest) leaf(at uint32, v []uint64) uint32 {
	for {
		next := f.child(at, v)
		if next == at {
			return at
		}
		at = next
	}
}

// child is the next node on the way, of a leaf the leaf itself.
func (f *forest) child(at uint32, v []uint64) uint32 {
	n := &f.nodes[at]
	if n.set && f.in(n, v[n.slot]) || !n.set && v[n.slot] <= n.t {
		return at + 1
	}
	return at + 1 + n.skip
}

// categorical reports whether some split reads the input as a category.
func (f *forest) categorical(in *input) bool {
	return slices.ContainsFunc(f.slots[in.from:in.to], func(m missing) bool { return m >= setOut })
}

// in reports whether a category code is in the node's set.
func (f *forest) in(n *node, code uint64) bool {
	if code >= codeIn {
		return code == codeIn
	}
	set := f.sets[n.t]
	code--
	return code>>5 < uint64(len(set)) && set[code>>5]>>(code&31)&1 != 0
}
