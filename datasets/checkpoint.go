package datasets

import (
	"crypto/ed25519"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/clefbench/clefbench/snapshot/checkpoint"
)

// checkpointName is the checkpoint of a whole directory; recorders write their own.
const checkpointName = "dataset" + checkpoint.Ext

// Checkpoint verifies a data set's directory and signs how far its chains have come, in
// the file dataset.checkpoint; now is the time that it is given. What is damaged, or not
// sealed, is not signed: the error is that of [Verification.Err].
func Checkpoint(dir string, key ed25519.PrivateKey, now time.Time) (*checkpoint.Checkpoint, error) {
	v, err := Verify(dir)
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		return nil, err
	}
	c := &checkpoint.Checkpoint{Origin: "dataset", Time: now.UTC(), Heads: v.chain.listHeads()}
	return c, c.Write(filepath.Join(dir, checkpointName), key)
}

// Signed says by whom a data set must be signed.
type Signed struct {
	// Keys are the public keys of the recorders and of whoever else signs: a checkpoint must
	// be signed by one of them.
	Keys []ed25519.PublicKey
	// Kept are checkpoint files that were kept elsewhere. Those in the directory can be put
	// back to older ones together with the segments; those cannot.
	Kept []string
}

// VerifySigned is [Verify] of a directory, and holds its segments against checkpoints: there
// must be one, each must be signed, each head must be there with its digest, and every
// segment must come before a head or after one.
func VerifySigned(dir string, by Signed) (*Verification, error) { return verify(dir, &by) }

// signed reads the checkpoints and holds the segments against them.
func (v *Verification) signed(dir string, entries []os.DirEntry, by *Signed) {
	paths := slices.Clone(by.Kept)
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), checkpoint.Ext) && e.Name()[0] != '.' {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if len(paths) == 0 {
		v.fault(dir, "there is no checkpoint to verify it by")
		return
	}
	c := cover{v: v, chain: v.chain, covered: map[string]bool{}, heads: map[string]string{}}
	opened := 0
	for _, path := range paths {
		cp, err := openCheckpoint(path, by.Keys)
		if err != nil {
			v.add(path, err)
			continue
		}
		opened++
		holds := false
		for _, h := range cp.Heads {
			holds = c.head(path, h) || holds
		}
		if holds {
			v.Checkpoints++
		}
	}
	if opened > 0 {
		c.rest()
		c.hosts()
	}
}

func openCheckpoint(path string, keys []ed25519.PublicKey) (*checkpoint.Checkpoint, error) {
	data, err := readBounded(path, checkpoint.MaxBytes)
	if err != nil {
		return nil, err
	}
	err = checkpoint.ErrKey
	for _, k := range keys {
		var cp *checkpoint.Checkpoint
		if cp, err = checkpoint.Open(data, k); err == nil || !errors.Is(err, checkpoint.ErrSignature) {
			return cp, err
		}
	}
	return nil, err
}

// cover is what checkpoints say of the segments of a directory.
type cover struct {
	v     *Verification
	chain *chain
	// heads are those of all checkpoints; covered are the segments that are heads or come
	// before one.
	heads   map[string]string
	covered map[string]bool
}

// head finds a head among the segments and marks it and all before it as covered; false
// when it is not there as it was signed.
func (c *cover) head(path string, h checkpoint.Head) bool {
	s := c.chain.byName[h.Segment]
	c.heads[h.Segment] = h.Digest
	switch {
	case s != nil && s.meta.Digest == h.Digest:
		for ; s != nil && !c.covered[s.name()]; s = c.chain.before(s) {
			c.covered[s.name()] = true
		}
		return true
	case s != nil:
		c.v.fault(s.path, "the checkpoint %s says that its digest is %s, it is %s: it was changed and sealed again, or replaced",
			filepath.Base(path), h.Digest, s.meta.Digest)
	case c.outlived(h):
		c.v.note(path, "segment %s, which it signs, is not here any more (retention, or another directory)", h.Segment)
	default:
		c.v.fault(path, "segment %s, which it signs, is not here or cannot be read", h.Segment)
	}
	return false
}

// hosts asks for one signed segment of each host. That all that was signed is gone with
// retention, and what is here came later, is what somebody without the key would arrange
// who puts other segments in the place of all.
func (c *cover) hosts() {
	signed := map[string]bool{}
	for i := range c.chain.segments {
		s := &c.chain.segments[i]
		signed[s.meta.Host] = signed[s.meta.Host] || c.covered[s.name()]
	}
	for _, host := range slices.Sorted(maps.Keys(signed)) {
		if !signed[host] {
			c.v.fault(c.v.Path, "no segment of host %s that is here is covered by a signature", host)
		}
	}
}

// outlived reports whether a head is gone as old segments go: later ones of its host are
// here, and no older ones.
func (c *cover) outlived(h checkpoint.Head) bool {
	for i := range c.chain.segments {
		s := &c.chain.segments[i]
		l := s.meta.Previous
		if l == nil || !strings.HasPrefix(h.Segment, s.meta.Host+"-") {
			continue
		}
		boot, seq, ok := cutName(h.Segment, s.meta.Host)
		if ok && l.Length >= h.Length && c.chain.older(h.Segment, boot, seq, s.meta.Host) == nil {
			return true
		}
	}
	return false
}

// rest reports the segments that no checkpoint covers: those that follow covered ones are
// a note, since only a later checkpoint can vouch for them; others are a fault.
func (c *cover) rest() {
	later := 0
	after := map[string]bool{}
	for i := range c.chain.segments {
		s := &c.chain.segments[i]
		switch {
		case c.covered[s.name()]:
		case c.follows(s, after):
			later++
		default:
			c.v.fault(s.path, "it comes neither before nor after what a checkpoint signs")
		}
	}
	if later > 0 {
		c.v.note(c.v.Path, "%d segments came after the last checkpoint: no signature covers them yet", later)
	}
}

// follows reports whether the way back from a segment leads to a covered one, or to a head
// that is gone; after remembers the segments of which it does.
func (c *cover) follows(s *segment, after map[string]bool) bool {
	var way []string
	for s != nil {
		way = append(way, s.name())
		l := s.meta.Previous
		p := c.chain.before(s)
		signed := l != nil && l.Segment != "" && c.heads[l.Segment] == l.Digest
		if signed || p != nil && (c.covered[p.name()] || after[p.name()]) {
			for _, name := range way {
				after[name] = true
			}
			return true
		}
		s = p
	}
	return false
}
