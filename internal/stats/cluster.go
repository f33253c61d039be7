package stats

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// mix is the finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection of 64 bits
// that passes for random.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Hash returns a 64-bit hash of a seed and a cluster key. It never changes between
// versions: groups, and with them the printed intervals, depend on it.
func Hash(seed uint64, key []byte) uint64 {
	h := mix(seed ^ uint64(len(key))*0xff51afd7ed558ccd)
	for len(key) >= 8 {
		h = mix(h ^ binary.LittleEndian.Uint64(key))
		key = key[8:]
	}
	if len(key) > 0 {
		var tail [8]byte
		copy(tail[:], key)
		h = mix(h ^ binary.LittleEndian.Uint64(tail[:]))
	}
	return h
}

// DistinctExact is how many distinct hashes [Distinct] counts exactly.
const DistinctExact = 1 << 16

// Distinct counts distinct hashes: exactly up to [DistinctExact], and estimated beyond
// (standard error 0.4 %) from the smallest hashes seen (k minimum values). It takes
// bounded memory and merges in any order. The zero Distinct is empty.
type Distinct struct {
	seen map[uint64]struct{}
	// full: more than DistinctExact were seen; then only hashes below limit matter.
	full  bool
	limit uint64
}

// Add counts a hash.
func (d *Distinct) Add(h uint64) {
	if d.full && h >= d.limit {
		return
	}
	if d.seen == nil {
		d.seen = make(map[uint64]struct{})
	}
	d.seen[h] = struct{}{}
	if len(d.seen) > 2*DistinctExact {
		d.compact()
	}
}

// compact keeps the DistinctExact smallest hashes. What it drops can never come back
// among the smallest, so the result does not depend on when it runs.
func (d *Distinct) compact() {
	if len(d.seen) <= DistinctExact {
		return
	}
	all := make([]uint64, 0, len(d.seen))
	for h := range d.seen {
		all = append(all, h)
	}
	slices.Sort(all)
	for _, h := range all[DistinctExact:] {
		delete(d.seen, h)
	}
	// Hashes at or above the first dropped one need not be looked at again.
	d.full, d.limit = true, all[DistinctExact]
}

// Merge counts the hashes of another counter too.
func (d *Distinct) Merge(o *Distinct) {
	for h := range o.seen {
		d.Add(h)
	}
	if o.full && (!d.full || o.limit < d.limit) {
		d.full, d.limit = true, o.limit
		for h := range d.seen {
			if h >= d.limit {
				delete(d.seen, h)
			}
		}
	}
}

// Count returns the number of distinct hashes, and whether it is exact.
func (d *Distinct) Count() (n int64, exact bool) {
	d.compact()
	if !d.full {
		return int64(len(d.seen)), true
	}
	// The k-th smallest of n uniform hashes lies near k/n.
	var kth uint64
	for h := range d.seen {
		kth = max(kth, h)
	}
	k := uint64(len(d.seen))
	hi, lo := bits.Mul64(k-1, 1<<63)
	if kth>>1 <= hi {
		return int64(k), false
	}
	q, _ := bits.Div64(hi, lo, kth>>1)
	return int64(q), false
}
