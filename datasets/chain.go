package datasets

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clefbench/clefbench/snapshot/checkpoint"
)

// chain is the segments of a directory by the links between them. Segments of a recorder
// follow each other, and its first one follows the last of the recorder before it on that
// host; recorders that run at the same time branch off.
type chain struct {
	segments []segment
	byName   map[string]*segment
	unread   map[string]bool
	// followed names the segments that another one follows.
	followed map[string]bool
}

func newChain(segments []segment, unread map[string]bool) *chain {
	c := &chain{segments: segments, byName: map[string]*segment{}, unread: unread, followed: map[string]bool{}}
	for i := range segments {
		c.byName[segments[i].name()] = &segments[i]
	}
	for i := range segments {
		if p := c.before(&segments[i]); p != nil {
			c.followed[p.name()] = true
		}
	}
	return c
}

// before is the segment that s follows, when it is here as s says; else nil.
func (c *chain) before(s *segment) *segment {
	l := s.meta.Previous
	if l == nil || l.Segment == "" {
		return nil
	}
	p := c.byName[l.Segment]
	if p == nil || p == s || p.meta.Digest != l.Digest {
		return nil
	}
	return p
}

// listHeads lists the segments that no other one follows, in the order of their names.
func (c *chain) listHeads() (out []checkpoint.Head) {
	for i := range c.segments {
		if s := &c.segments[i]; !c.followed[s.name()] {
			out = append(out, checkpoint.Head{Segment: s.name(), Digest: s.meta.Digest, Length: length(s)})
		}
	}
	return out
}

// length is the number of segments of the chain up to s, as far as s tells.
func length(s *segment) int64 { return s.meta.Previous.Next("", "").Length }

// verify checks every link. What is missing inside a recorder's sequence was found
// already.
func (c *chain) verify(v *Verification, dir string) {
	for i := range c.segments {
		s := &c.segments[i]
		l := s.meta.Previous
		if l == nil {
			continue // of a version before there were chains
		}
		if want := fmt.Sprintf("%s-%s-%08d", s.meta.Host, s.meta.Boot, s.meta.Sequence); want != s.name() {
			v.fault(s.path, "it was written as %s, and does not belong under this name", want)
			continue
		}
		switch p := c.byName[l.Segment]; {
		case l.Segment == "":
			c.first(v, s, dir)
		case p != nil:
			c.link(v, s, p)
		case !c.unread[l.Segment]:
			c.missing(v, s)
		}
	}
	c.sideways(v)
}

// first checks what the first segment of a chain refers to.
func (c *chain) first(v *Verification, s *segment, dir string) {
	if s.meta.Previous.Replaces == "" {
		return
	}
	sources, err := rewriteSources(dir)
	if err != nil {
		return // a log that cannot be read is a finding of its own
	}
	if !slices.Contains(sources, s.meta.Previous.Replaces) {
		v.fault(s.path, "it was made of the data set %s, of which %s says nothing", s.meta.Previous.Replaces, RetentionName)
	}
}

// link holds a segment against the one that it follows.
func (c *chain) link(v *Verification, s, p *segment) {
	switch l := s.meta.Previous; {
	case p.meta.Digest != l.Digest:
		v.fault(p.path, "%s was written after a segment of this name with the digest %s; the digest of this one is %s: it was changed and sealed again, or replaced",
			s.name(), l.Digest, p.meta.Digest)
	case l.Length != length(p):
		v.fault(s.path, "it says that %d segments came before it, by %s there were %d", l.Length, p.name(), length(p))
	}
}

// missing reports that the segment before s is not here. At the beginning of what is here
// that is what retention does, and a note; with older ones here it is a fault.
func (c *chain) missing(v *Verification, s *segment) {
	l := s.meta.Previous
	boot, seq, ok := cutName(l.Segment, s.meta.Host)
	if ok && boot == s.meta.Boot {
		return // a gap in a recorder's sequence, or before it: found there
	}
	if older := c.older(l.Segment, boot, seq, s.meta.Host); ok && older != nil {
		v.fault(s.path, "it was written after segment %s, which is missing, while the older %s is here", l.Segment, older.name())
		return
	}
	v.note(s.path, "the %d segments of this host before it are not here (retention, or another directory)", l.Length)
}

// older finds a segment of the host that was certainly written before a missing one: by
// the same recorder with a lower number, or with all its rows before that recorder began.
func (c *chain) older(name, boot string, seq int, host string) *segment {
	began, timed := bootTime(boot)
	for i := range c.segments {
		s := &c.segments[i]
		if s.meta.Host != host {
			continue
		}
		before := s.name() < name
		if s.meta.Boot == boot {
			before = s.meta.Sequence < seq
		} else if timed {
			// Another recorder may have run beside the missing one, and still run.
			before = before && s.meta.Rows > 0 && s.meta.MaxTime.Before(began)
		}
		if before {
			return s
		}
	}
	return nil
}

// cutName takes a segment's name apart.
func cutName(name, host string) (boot string, seq int, ok bool) {
	rest, ok := strings.CutPrefix(name, host+"-")
	i := strings.LastIndexByte(rest, '-')
	if !ok || i < 0 {
		return "", 0, false
	}
	seq, err := strconv.Atoi(rest[i+1:])
	return rest[:i], seq, err == nil
}

// bootTime is when a recorder began whose boot id was not chosen: such ids begin with
// milliseconds in hex.
func bootTime(boot string) (time.Time, bool) {
	if len(boot) != 20 {
		return time.Time{}, false
	}
	ms, err := strconv.ParseInt(boot[:12], 16, 64)
	if err != nil || ms < 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(ms), true
}

// sideways notes segments that later ones of the same recorder pass by: a write error left
// them open, and recovery sealed them when the chain had gone on.
func (c *chain) sideways(v *Verification) {
	for i := range c.segments[:max(len(c.segments)-1, 0)] {
		s, next := &c.segments[i], &c.segments[i+1]
		same := s.meta.Host == next.meta.Host && s.meta.Boot == next.meta.Boot
		if l := next.meta.Previous; same && s.meta.Previous != nil && l != nil && l.Segment != s.name() {
			v.note(s.path, "%s does not follow it: a write error left it open, and nothing but a later checkpoint vouches for it", next.name())
		}
	}
}

// rewriteSources lists the digests of the data sets that a directory was made of.
func rewriteSources(dir string) ([]string, error) {
	done, err := readRewrites(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range done {
		out = append(out, done[i].Source.Digest)
	}
	return out, nil
}
