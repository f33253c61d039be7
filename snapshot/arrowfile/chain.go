package arrowfile

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/internal/wholefile"
)

// Link ties a segment to the one that was sealed before it. It stands in the schema's
// metadata, so that a file has it from its first byte on, also when its writer is killed.
//
// The digests make a chain: whoever changes a segment has to make every later one anew.
type Link struct {
	// Segment and Digest are the name and the file digest of the segment that this writer,
	// or an earlier one on this host, had sealed last; empty in the first of a chain.
	Segment string `json:"segment,omitempty"`
	Digest  string `json:"digest,omitempty"`
	// Length is how many segments the chain had then.
	Length int64 `json:"length"`
	// Replaces is the digest of the data set that was rewritten into this one, in the first
	// segment of a chain.
	Replaces string `json:"replaces,omitempty"`
}

// Next is the link of the segment that comes after one of a name, digest and own link. A
// segment without a link is of a version before there were chains: one begins with it.
func (l *Link) Next(segment, digest string) Link {
	n := int64(1)
	if l != nil {
		n = l.Length + 1
	}
	return Link{Segment: segment, Digest: digest, Length: n}
}

func parseLink(kv map[string]string) (*Link, error) {
	text, ok := kv[keyPrevious]
	if !ok {
		return nil, nil
	}
	var l Link
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return nil, fmt.Errorf("%w: link to the segment before: %w", ErrSchema, err)
	}
	return &l, nil
}

// firstLink is the link of a writer's first segment: to the last segment that an earlier
// boot of the host has sealed in the directory, be it still there or not. Files that cannot be read, and those of
// other hosts, are passed over: a damaged file is for Verify to find, and no reason not
// to record.
func firstLink(dir string, o *Options) (Link, error) {
	if o.Replaces != "" {
		return Link{Replaces: o.Replaces}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Link{}, err
	}
	kept := keptLink(chainPath(dir, o.Host))
	if kept.Segment >= SegmentOf(segmentName(o, 1)) {
		kept = Link{} // of this boot: it is written anew
	}
	for _, e := range slices.Backward(entries) { // names are sorted, in the order of writing
		if !strings.HasPrefix(e.Name(), o.Host+"-") || !strings.HasSuffix(e.Name(), Ext) {
			continue
		}
		if SegmentOf(e.Name()) <= kept.Segment {
			break
		}
		m, err := readTail(filepath.Join(dir, e.Name()))
		if err == nil && m.Kind == KindSnapshot && m.Host == o.Host {
			return m.Previous.Next(SegmentOf(e.Name()), m.Digest), nil
		}
	}
	return kept, nil
}

// chainPath is the file that keeps a host's link for the time when its segments have left
// the directory, because an upload has taken them.
func chainPath(dir, host string) string { return filepath.Join(dir, ".chain-"+host) }

// maxLink bounds that file.
const maxLink = 64 << 10

// keptLink reads it. One that cannot be read is no reason not to record either.
func keptLink(path string) (l Link) {
	f, err := os.Open(path)
	if err != nil {
		return Link{}
	}
	defer f.Close()
	if json.NewDecoder(io.LimitReader(f, maxLink)).Decode(&l) != nil {
		return Link{}
	}
	return l
}

// keepLink remembers that the next segment follows the one that was just sealed.
func (w *Writer) keepLink() error {
	data, err := json.Marshal(w.link)
	if err != nil {
		return err
	}
	return wholefile.Write(chainPath(w.dir, w.opts.Host), append(data, '\n'))
}

// maxTail bounds what is read of a file to learn its digest. Digests of messages take the
// most of it: the longest segments have some thousands.
const maxTail = 64 << 20

// readTail reads the metadata of a sealed file from its footer alone. The digest covers the
// footer; whether the rest of the file is what the footer says is not looked at.
func readTail(path string) (Meta, error) {
	f, err := os.Open(path)
	if err != nil {
		return Meta{}, err
	}
	m, err := tailMeta(f)
	return m, errors.Join(err, f.Close())
}

func tailMeta(f *os.File) (Meta, error) {
	info, err := f.Stat()
	if err != nil {
		return Meta{}, err
	}
	last := make([]byte, tailLen)
	at := info.Size() - int64(tailLen)
	if at < 0 {
		return Meta{}, fmt.Errorf("%w: %d bytes", ErrCorrupt, info.Size())
	}
	if _, err := f.ReadAt(last, at); err != nil {
		return Meta{}, err
	}
	n := int64(int32(binary.LittleEndian.Uint32(last)))
	before := int64(len(headMagic) + len(eosMark))
	if string(last[4:]) != tailMagic || n <= digestTail || n > maxTail || n+before > at {
		return Meta{}, fmt.Errorf("%w: no footer", ErrCorrupt)
	}
	data, err := io.ReadAll(io.NewSectionReader(f, at-n-before, info.Size()))
	if err != nil {
		return Meta{}, err
	}
	digest, err := checkFooter(data, int(before))
	if err != nil {
		return Meta{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	ft, err := parseFooter(data, int(before))
	if err != nil {
		return Meta{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	m, err := metaOf(ft.schema.keyValues(2))
	if err := errors.Join(err, ft.schema.f.err); err != nil {
		return Meta{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	m.Sealed, m.Digest = true, hex.EncodeToString(digest[:])
	ft.info.fill(&m)
	return m, nil
}
