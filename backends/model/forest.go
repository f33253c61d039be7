package model

import (
	"fmt"
	"math"
)

// planter lays the trees of an ensemble out for the walk.
type planter struct {
	f *forest
	e *ensemble
	// slots gives the slot of a feature under a treatment of missing values.
	slots map[slotKey]uint16
}

type slotKey struct {
	feature int32
	missing missing
}

// plant turns an ensemble into a forest whose inputs are the features that some split
// reads, in the order of the file. Only they need an attribute.
func plant(e *ensemble) (*forest, error) {
	p := &planter{e: e, slots: map[slotKey]uint16{}, f: &forest{base: e.base, single: e.single, scale: e.scale, rounds: float64(e.rounds)}}
	if err := p.inputs(); err != nil {
		return nil, err
	}
	for i := range e.trees {
		t := &e.trees[i]
		at := len(p.f.nodes)
		if err := p.subtree(t, 0, 0, at); err != nil {
			return nil, fmt.Errorf("tree %d: %w", i, err)
		}
		p.f.roots = append(p.f.roots, root{uint32(at), uint32(t.group)})
	}
	return p.f, nil
}

// inputs finds the features in use and gives each of their treatments a slot.
func (p *planter) inputs() error {
	used := make([]map[missing]bool, len(p.e.names))
	for _, t := range p.e.trees {
		for i := range t.nodes {
			if n := &t.nodes[i]; !n.isLeaf() {
				if used[n.feature] == nil {
					used[n.feature] = map[missing]bool{}
				}
				used[n.feature][n.missing] = true
			}
		}
	}
	f := p.f
	for i, ms := range used {
		if ms == nil {
			continue
		}
		in := input{feature: p.e.names[i], name: p.e.names[i], from: len(f.slots)}
		for m := missingZero; m <= floorOut; m++ {
			if ms[m] {
				p.slots[slotKey{int32(i), m}] = uint16(len(f.slots))
				f.slots = append(f.slots, m)
			}
		}
		in.to = len(f.slots)
		f.inputs = append(f.inputs, in)
	}
	if len(f.slots) > maxSlots {
		return fmt.Errorf("the splits read %d features (a feature whose missing values are treated in two ways counts twice), the limit is %d", len(f.slots), maxSlots)
	}
	return nil
}

// subtree appends a node and all below it. The number of nodes that a tree may add is its
// own: more means that a node is reached twice.
func (p *planter) subtree(t *tree, i int32, depth, first int) error {
	switch {
	case i < 0 || int(i) >= len(t.nodes):
		return fmt.Errorf("a child is node %d of %d", i, len(t.nodes))
	case len(p.f.nodes)-first >= len(t.nodes):
		return fmt.Errorf("node %d is reached twice", i)
	case depth > maxDepth:
		return fmt.Errorf("more than %d levels", maxDepth)
	}
	f, n, at := p.f, &t.nodes[i], len(p.f.nodes)
	f.nodes, f.mean = append(f.nodes, node{skip: math.MaxUint32}), append(f.mean, n.value)
	if n.isLeaf() {
		return nil
	}
	here := node{t: order(n.value), slot: p.slots[slotKey{n.feature, n.missing}]}
	if n.set != nil {
		here.set, here.t = true, uint64(len(f.sets))
		f.sets = append(f.sets, n.set)
	}
	if err := p.subtree(t, n.left, depth+1, first); err != nil {
		return err
	}
	right := len(f.nodes)
	here.skip = uint32(len(f.nodes) - at - 1)
	if err := p.subtree(t, n.right, depth+1, first); err != nil {
		return err
	}
	f.nodes[at] = here
	f.mean[at] = weighted(f.mean[at+1], t.nodes[n.left].cover, f.mean[right], t.nodes[n.right].cover)
	return nil
}

// weighted is the mean of a and b by their weights; where the file has none, equal ones.
func weighted(a, wa, b, wb float64) float64 {
	w := wa + wb
	if !(wa >= 0 && wb >= 0 && w > 0) || math.IsInf(w, 1) {
		return a/2 + b/2
	}
	return a*(wa/w) + b*(wb/w)
}
