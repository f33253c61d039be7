package stats

import (
	"maps"
	"math"
	"slices"
)

// The sizes of a [Groups] table.
const (
	// ExactClusters is how many distinct clusters are kept apart; with more, clusters
	// are hashed into FineGroups.
	ExactClusters = 200
	// FineGroups is the number of hashed groups for sums, CoarseGroups for histograms.
	// Coarse groups are unions of fine ones: coarse = fine*CoarseGroups/FineGroups.
	FineGroups   = 1024
	CoarseGroups = 128
)

// Groups holds integer sums and a histogram for every group of clusters. It takes
// bounded memory in the number of rows, and the same rows give the same table in any
// order and any partition: up to [ExactClusters] distinct clusters each is a group of
// its own, beyond that all of them are hashed.
type Groups struct {
	columns int
	// slots maps a cluster to its slot while clusters are kept apart; nil when hashed.
	slots map[uint64]int32
	cells []Sum
	hists []Histogram
}

// NewGroups returns an empty table with that many columns of sums.
func NewGroups(columns int) *Groups {
	return &Groups{columns: columns, slots: map[uint64]int32{}}
}

func fineGroup(cluster uint64) int { return int(cluster >> 54) }

// Exact reports whether every cluster is a group of its own.
func (g *Groups) Exact() bool { return g.slots != nil }

// Slot returns the slot of a cluster, valid until the next call of Slot, Merge or Sub.
func (g *Groups) Slot(cluster uint64) int {
	if g.slots == nil {
		return fineGroup(cluster)
	}
	if s, ok := g.slots[cluster]; ok {
		return int(s)
	}
	if len(g.slots) == ExactClusters {
		g.spill()
		return fineGroup(cluster)
	}
	s := len(g.slots)
	g.slots[cluster] = int32(s)
	g.cells = append(g.cells, make([]Sum, g.columns)...)
	g.hists = append(g.hists, Histogram{})
	return s
}

// Row returns the sums of a slot, to be added to in place.
func (g *Groups) Row(slot int) []Sum { return g.cells[slot*g.columns : (slot+1)*g.columns] }

// Histogram returns the histogram of a slot's group; hashed slots share one.
func (g *Groups) Histogram(slot int) *Histogram {
	if g.slots == nil {
		return &g.hists[slot*CoarseGroups/FineGroups]
	}
	return &g.hists[slot]
}

// spill turns exact clusters into hashed groups.
func (g *Groups) spill() {
	h := &Groups{
		columns: g.columns, cells: make([]Sum, g.columns*FineGroups), hists: make([]Histogram, CoarseGroups),
	}
	for cluster, s := range g.slots {
		h.absorb(h.Slot(cluster), g.Row(int(s)), &g.hists[s])
	}
	*g = *h
}

func (g *Groups) absorb(slot int, row []Sum, hist *Histogram) {
	to := g.Row(slot)
	for i := range row {
		to[i].AddSum(row[i])
	}
	g.Histogram(slot).Merge(hist)
}

// Merge adds the rows of another table with the same columns.
func (g *Groups) Merge(o *Groups) {
	if o.slots != nil {
		for cluster, s := range o.slots {
			g.absorb(g.Slot(cluster), o.Row(int(s)), &o.hists[s])
		}
		return
	}
	if g.slots != nil {
		g.spill()
	}
	for i := range o.cells {
		g.cells[i].AddSum(o.cells[i])
	}
	for i := range o.hists {
		g.hists[i].Merge(&o.hists[i])
	}
}

// Sub takes away a table of rows that are part of g: the two must have seen the same
// row for every row of o.
func (g *Groups) Sub(o *Groups) {
	if o.slots == nil {
		for i := range o.cells {
			g.cells[i].SubSum(o.cells[i])
		}
		for i := range o.hists {
			g.hists[i].Sub(&o.hists[i])
		}
		return
	}
	for cluster, s := range o.slots {
		slot := g.Slot(cluster)
		to := g.Row(slot)
		for i, v := range o.Row(int(s)) {
			to[i].SubSum(v)
		}
		g.Histogram(slot).Sub(&o.hists[s])
	}
}

// Clone returns a copy that shares no memory.
func (g *Groups) Clone() *Groups {
	c := &Groups{columns: g.columns, slots: maps.Clone(g.slots), cells: slices.Clone(g.cells)}
	c.hists = make([]Histogram, len(g.hists))
	for i := range g.hists {
		c.hists[i] = g.hists[i].Clone()
	}
	return c
}

// Frame is one table laid out over a set of groups that several tables share, so that
// one draw of group counts resamples them all together.
type Frame struct {
	// Groups is the number of groups; Cols[c][g] the sum of column c in group g.
	Groups int
	Cols   [][]float64
	// Hists holds a histogram for each group; nil in a fine frame of hashed groups, where
	// histograms are known for coarse groups only.
	Hists []*Histogram
	// used lists the columns with something in them: the others need no arithmetic.
	used []int
}

func (f *Frame) index() *Frame {
	for c := range f.Cols {
		if f.Filled(c) > 0 {
			f.used = append(f.used, c)
		}
	}
	return f
}

// Layout is the set of groups that several tables share. While all clusters of all
// tables together are few enough, they are the groups, in the order of their hash.
// Otherwise the groups are the hashed ones: fine for sums, coarse (with sums and
// histograms) for what needs both.
type Layout struct {
	// index numbers the clusters; nil when they are hashed.
	index map[uint64]int
}

// NewLayout returns the common layout of tables; nil tables are empty.
func NewLayout(tables ...*Groups) *Layout {
	union := map[uint64]int{}
	for _, t := range tables {
		if t == nil {
			continue
		}
		if t.slots == nil {
			return &Layout{}
		}
		for cluster := range t.slots {
			union[cluster] = 0
		}
		if len(union) > ExactClusters {
			return &Layout{}
		}
	}
	for i, cluster := range slices.Sorted(maps.Keys(union)) {
		union[cluster] = i
	}
	return &Layout{index: union}
}

// Equal reports whether two layouts have the same groups, so that draws over one are
// draws over the other.
func (l *Layout) Equal(o *Layout) bool {
	return (l.index == nil) == (o.index == nil) && maps.Equal(l.index, o.index)
}

// Exact reports whether clusters are the groups; fine and coarse frames are then the
// same.
func (l *Layout) Exact() bool { return l.index != nil }

// Frames lays tables of the layout out. A nil table gives an empty frame.
func (l *Layout) Frames(tables ...*Groups) (fine, coarse []*Frame) {
	for _, t := range tables {
		if l.Exact() {
			f := exactFrame(t, l.index)
			fine, coarse = append(fine, f), append(coarse, f)
			continue
		}
		f, c := hashedFrames(t)
		fine, coarse = append(fine, f), append(coarse, c)
	}
	return fine, coarse
}

func newFrame(groups, columns int) *Frame {
	f := &Frame{Groups: groups, Cols: make([][]float64, columns)}
	flat := make([]float64, groups*columns)
	for c := range f.Cols {
		f.Cols[c] = flat[c*groups : (c+1)*groups]
	}
	return f
}

func exactFrame(t *Groups, index map[uint64]int) *Frame {
	if t == nil {
		return newFrame(len(index), 0)
	}
	f := newFrame(len(index), t.columns)
	f.Hists = make([]*Histogram, len(index))
	for cluster, s := range t.slots {
		g := index[cluster]
		for c, sum := range t.Row(int(s)) {
			f.Cols[c][g] = sum.Float()
		}
		f.Hists[g] = &t.hists[s]
	}
	return f.index()
}

func hashedFrames(t *Groups) (fine, coarse *Frame) {
	if t == nil {
		return newFrame(FineGroups, 0), newFrame(CoarseGroups, 0)
	}
	if t.slots != nil {
		t = t.Clone()
		t.spill()
	}
	fine, coarse = newFrame(FineGroups, t.columns), newFrame(CoarseGroups, t.columns)
	sums := make([]Sum, t.columns*CoarseGroups)
	for g := range FineGroups {
		for c, sum := range t.Row(g) {
			fine.Cols[c][g] = sum.Float()
			sums[g*CoarseGroups/FineGroups*t.columns+c].AddSum(sum)
		}
	}
	coarse.Hists = make([]*Histogram, CoarseGroups)
	for g := range CoarseGroups {
		for c := range t.columns {
			coarse.Cols[c][g] = sums[g*t.columns+c].Float()
		}
		coarse.Hists[g] = &t.hists[g]
	}
	return fine.index(), coarse.index()
}

// Filled returns the number of groups with something in column c: the number of
// independent pieces that a statistic over that column rests on.
func (f *Frame) Filled(c int) int {
	if c >= len(f.Cols) {
		return 0
	}
	n := 0
	for _, v := range f.Cols[c] {
		if v != 0 {
			n++
		}
	}
	return n
}

// Quantiles answers quantile queries on resampled histograms of a frame.
type Quantiles struct {
	buckets []uint16
	// below[b*groups+g] is the weight of group g at or below buckets[b]; total[g] all of it.
	below, total []float64
	groups       int
}

// NewQuantiles prepares the histograms of a frame.
func NewQuantiles(f *Frame) *Quantiles {
	q := &Quantiles{groups: f.Groups, total: make([]float64, f.Groups)}
	set := map[uint16]bool{}
	for _, h := range f.Hists {
		if h == nil {
			continue
		}
		for c := range h.Cells() {
			set[c.Bucket] = true
		}
	}
	q.buckets = slices.Sorted(maps.Keys(set))
	q.below = make([]float64, len(q.buckets)*f.Groups)
	for g, h := range f.Hists {
		if h == nil {
			continue
		}
		q.total[g] = float64(h.Total())
		sum := 0.0
		for b, bucket := range q.buckets {
			sum += float64(h.weight(bucket))
			q.below[b*f.Groups+g] = sum
		}
	}
	return q
}

// At returns the q-quantile when group g counts counts[g] times; conventions are those
// of [Histogram.Quantile].
func (q *Quantiles) At(counts []float64, p float64) float64 {
	total := Dot(counts, q.total)
	if total == 0 {
		return math.NaN()
	}
	need := rank(p, total)
	lo, hi := 0, len(q.buckets)
	for lo < hi {
		mid := (lo + hi) / 2
		if Dot(counts, q.below[mid*q.groups:(mid+1)*q.groups]) >= need {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == len(q.buckets) {
		return math.Inf(1)
	}
	return BucketValue(q.buckets[lo])
}

// Dot returns the inner product of two slices of one length.
func Dot(a, b []float64) float64 {
	// Four independent sums: the order is fixed, so the result is too, and the additions
	// overlap (measured: at least four times as fast as one chain).
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// Resample sets sums to those of every column when group g counts counts[g] times.
func (f *Frame) Resample(counts, sums []float64) {
	clear(sums)
	for _, c := range f.used {
		sums[c] = Dot(counts, f.Cols[c])
	}
}

// Totals returns the sum of every column over all groups: exact, then rounded once.
func (g *Groups) Totals() []float64 {
	sums := make([]Sum, g.columns)
	for i := range g.cells {
		sums[i%g.columns].AddSum(g.cells[i])
	}
	out := make([]float64, g.columns)
	for c := range sums {
		out[c] = sums[c].Float()
	}
	return out
}

// Histograms returns the merged histogram of all groups.
func (g *Groups) Histograms() *Histogram {
	var all Histogram
	for i := range g.hists {
		all.Merge(&g.hists[i])
	}
	return &all
}
