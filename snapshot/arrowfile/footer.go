package arrowfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// The magic of an Arrow file: at the head padded to 8 bytes, at the end as it is.
const (
	headMagic = "ARROW1\x00\x00"
	tailMagic = "ARROW1"
	// tailLen is the footer's length and the magic.
	tailLen = 4 + len(tailMagic)
	// eosMark ends the messages.
	eosMark = "\xff\xff\xff\xff\x00\x00\x00\x00"
)

// Keys of the schema's metadata, of a batch's and of the footer's.
const (
	keyVersion  = "clefbench.schema_version"
	keyKind     = "clefbench.kind"
	keyCapture  = "clefbench.capture_digest"
	keyHost     = "clefbench.host"
	keyBoot     = "clefbench.boot"
	keySequence = "clefbench.sequence"
	keyFeatures = "clefbench.feature_sets"
	// keyList is the digest of the capture list as it was configured, which says more than
	// names and types.
	keyList = "clefbench.capture_list"
	// keySampling says how the rows were chosen.
	keySampling = "clefbench.sampling"
	// keyPrevious holds a Link.
	keyPrevious = "clefbench.previous"
	// What a recorder says of itself; left out where it is empty.
	keyEntityKey = "clefbench.entity_key_id"
	keyRedaction = "clefbench.redaction"
	// keySegment holds a segmentInfo, in every batch for the rows up to its end.
	keySegment = "clefbench.segment"
	// keyDigests is the list of the digests of all messages, in the order of the file.
	keyDigests = "clefbench.digests"
)

// Meta describes a file.
type Meta struct {
	// SchemaVersion and Kind say what the columns are.
	SchemaVersion int
	Kind          Kind
	// Segment is the name by which rows refer to the file.
	Segment string
	// Host, Boot and Sequence say who wrote it, as which segment.
	Host, Boot string
	Sequence   int
	// CaptureDigest is the SHA-256 of the names and types of the captured attributes;
	// CaptureList is Options.CaptureDigest, or "".
	CaptureDigest, CaptureList string
	// Sampling is Options.Sampling, or "".
	Sampling string
	// Previous ties the file to the segment before it; nil in files that are no segments,
	// and in those of versions before there were chains.
	Previous *Link
	// EntityKeyID and Redaction are what the options said; empty in files that were written
	// without.
	EntityKeyID, Redaction string
	// FeatureSets names the features of each feature set.
	FeatureSets map[string][]string
	Rows        int64
	// MinTime and MaxTime span the snapshots' times; zero without rows.
	MinTime, MaxTime time.Time
	// StrategyVersions lists the strategy versions seen, sorted.
	StrategyVersions []string
	// Mended counts the values in which invalid UTF-8 was replaced.
	Mended int64
	// Ledger accounts for this segment; Total for the recorder's whole life, in the last
	// segment of a recorder that was closed.
	Ledger snapshot.Ledger
	Total  *snapshot.Ledger
	// Sealed: the file has a footer, and Digest is the digest that covers all its bytes.
	Sealed bool
	Digest string
	// Tail is the number of bytes after the last whole batch of a file that was not
	// sealed.
	Tail int64
}

// segmentInfo is what a segment tells about its rows so far.
type segmentInfo struct {
	Rows       int64            `json:"rows"`
	MinTS      *int64           `json:"min_ts_ns,omitempty"`
	MaxTS      *int64           `json:"max_ts_ns,omitempty"`
	Strategies []string         `json:"strategy_versions,omitempty"`
	Mended     int64            `json:"mended,omitempty"`
	Ledger     snapshot.Ledger  `json:"ledger"`
	Total      *snapshot.Ledger `json:"total_ledger,omitempty"`
}

// seen widens the span of times.
func (i *segmentInfo) seen(ns int64) {
	if i.MinTS == nil {
		lo, hi := ns, ns
		i.MinTS, i.MaxTS = &lo, &hi
		return
	}
	*i.MinTS, *i.MaxTS = min(*i.MinTS, ns), max(*i.MaxTS, ns)
}

func (i *segmentInfo) strategy(v string) {
	if at, found := slices.BinarySearch(i.Strategies, v); !found && v != "" {
		i.Strategies = slices.Insert(i.Strategies, at, v)
	}
}

// plus returns the sum of two infos; neither is changed.
func (i segmentInfo) plus(o segmentInfo) segmentInfo {
	sum := segmentInfo{Rows: i.Rows + o.Rows, Mended: i.Mended + o.Mended, Ledger: i.Ledger.Clone()}
	sum.Ledger.Add(o.Ledger)
	for _, part := range []segmentInfo{i, o} {
		if part.MinTS != nil {
			sum.seen(*part.MinTS)
			sum.seen(*part.MaxTS)
		}
		for _, v := range part.Strategies {
			sum.strategy(v)
		}
	}
	return sum
}

func (i segmentInfo) json() (string, error) {
	b, err := json.Marshal(i)
	return string(b), err
}

func (i segmentInfo) fill(m *Meta) {
	m.Rows, m.Mended, m.Ledger, m.Total = i.Rows, i.Mended, i.Ledger, i.Total
	m.StrategyVersions = i.Strategies
	if i.MinTS != nil && i.MaxTS != nil {
		m.MinTime, m.MaxTime = time.Unix(0, *i.MinTS).UTC(), time.Unix(0, *i.MaxTS).UTC()
	}
}

func captureDigest(s *decision.Schema) string {
	h := sha256.New()
	for _, f := range s.Fields() {
		fmt.Fprintf(h, "%q %v\n", f.Name, f.Type)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// headMeta is the metadata of the schema message.
func headMeta(o *Options, h *segmentHead) (keys, values []string, err error) {
	features, err := json.Marshal(o.FeatureSets)
	if err != nil {
		return nil, nil, fmt.Errorf("feature sets: %w", err)
	}
	pairs := []keyValue{
		{keyVersion, strconv.Itoa(snapshot.SchemaVersion)}, {keyKind, string(h.kind)},
		{keyCapture, captureDigest(h.attrs)}, {keyHost, o.Host}, {keyBoot, o.Boot},
		{keySequence, strconv.Itoa(h.seq)}, {keyFeatures, string(features)},
	}
	for _, p := range []keyValue{{keyList, o.CaptureDigest}, {keyEntityKey, o.EntityKeyID}, {keyRedaction, o.Redaction}, {keySampling, o.Sampling}} {
		if p.value != "" {
			pairs = append(pairs, p)
		}
	}
	if h.link != nil {
		link, err := json.Marshal(h.link)
		if err != nil {
			return nil, nil, fmt.Errorf("link: %w", err)
		}
		pairs = append(pairs, keyValue{keyPrevious, string(link)})
	}
	for _, p := range pairs {
		keys, values = append(keys, p.key), append(values, p.value)
	}
	return keys, values, nil
}

// metaOf reads the schema's metadata. A version above ours is refused: what its columns
// mean is not known.
func metaOf(kv map[string]string) (Meta, error) {
	m := Meta{Kind: Kind(kv[keyKind]), CaptureDigest: kv[keyCapture], CaptureList: kv[keyList], Host: kv[keyHost], Boot: kv[keyBoot],
		EntityKeyID: kv[keyEntityKey], Sampling: kv[keySampling], Redaction: kv[keyRedaction]}
	var err error
	if m.SchemaVersion, err = strconv.Atoi(kv[keyVersion]); err != nil || m.SchemaVersion < 1 {
		return m, fmt.Errorf("%w: no schema version: not a file of clefbench", ErrSchema)
	}
	if m.SchemaVersion > snapshot.SchemaVersion {
		return m, fmt.Errorf("%w: %d, this program reads up to %d", ErrVersion, m.SchemaVersion, snapshot.SchemaVersion)
	}
	switch m.Kind {
	case KindSnapshot, KindOutcome, KindLabel:
	default:
		return m, fmt.Errorf("%w: row kind %q", ErrSchema, m.Kind)
	}
	if s := kv[keySequence]; s != "" {
		if m.Sequence, err = strconv.Atoi(s); err != nil {
			return m, fmt.Errorf("%w: sequence %q", ErrSchema, s)
		}
	}
	if m.Previous, err = parseLink(kv); err != nil {
		return m, err
	}
	if s := kv[keyFeatures]; s != "" {
		if err := json.Unmarshal([]byte(s), &m.FeatureSets); err != nil {
			return m, fmt.Errorf("%w: feature sets: %w", ErrSchema, err)
		}
	}
	return m, nil
}

// footerIn is what a footer is made of.
type footerIn struct {
	schema        []byte // the encapsulated schema message
	dicts, blocks []block
	digests       []sum
	info          string
}

// tail builds all that follows the last message: end of stream, footer, length and magic.
// It returns the file's digest too.
func (in *footerIn) tail() ([]byte, sum, error) {
	b := flatbuffers.NewBuilder(1024 + len(in.schema))
	digest := b.CreateString(zeroDigest) // first, so that it ends up last
	schema, err := embed(b, in.schema)
	if err != nil {
		return nil, sum{}, err
	}
	list := make([]byte, 0, digestText*len(in.digests))
	for _, d := range in.digests {
		list = hex.AppendEncode(list, d[:])
	}
	meta := keyValues(b, []keyValue{{keySegment, in.info}, {keyDigests, string(list)}}, digest)
	dicts, blocks := blockVector(b, in.dicts), blockVector(b, in.blocks)
	b.StartObject(5)
	b.PrependInt16Slot(0, metadataV5, 0)
	b.PrependUOffsetTSlot(1, schema, 0)
	b.PrependUOffsetTSlot(2, dicts, 0)
	b.PrependUOffsetTSlot(3, blocks, 0)
	b.PrependUOffsetTSlot(4, meta, 0)
	b.Finish(b.EndObject())

	fb := b.FinishedBytes()
	out := append([]byte(eosMark), fb...)
	field := len(out) - digestTail
	out = binary.LittleEndian.AppendUint32(out, uint32(len(fb)))
	out = append(out, tailMagic...)
	d := digestOf(sum{}, out, field)
	hex.Encode(out[field:], d[:])
	return out, d, nil
}

// embed puts the schema's flatbuffer into the footer as it stands in the schema message,
// and returns the place of the Schema table inside it.
func embed(b *flatbuffers.Builder, message []byte) (flatbuffers.UOffsetT, error) {
	blob := message[8:]
	f := &flat{b: blob}
	schema := f.root().sub(2)
	if f.err != nil || !schema.ok() {
		return 0, fmt.Errorf("schema message: %w", orCorrupt(f.err))
	}
	b.StartVector(1, len(blob), 8)
	for i := len(blob) - 1; i >= 0; i-- {
		b.PlaceByte(blob[i])
	}
	vector := b.EndVector(len(blob))
	// The builder counts from the end of the buffer; the vector starts with its length.
	return vector - 4 - flatbuffers.UOffsetT(schema.pos), nil
}

func blockVector(b *flatbuffers.Builder, blocks []block) flatbuffers.UOffsetT {
	b.StartVector(24, len(blocks), 8)
	for i := len(blocks) - 1; i >= 0; i-- {
		b.Prep(8, 24)
		b.PrependInt64(blocks[i].bodyLen)
		b.Pad(4)
		b.PrependInt32(blocks[i].metaLen)
		b.PrependInt64(blocks[i].offset)
	}
	return b.EndVector(len(blocks))
}

// footer is a parsed footer.
type footer struct {
	// start is the offset of the end-of-stream marker.
	start         int64
	schema        table
	dicts, blocks []block
	digests       []sum
	info          segmentInfo
}

// findFooter locates the footer by the file's last bytes.
func findFooter(data []byte) (start int, err error) {
	if len(data) < len(headMagic)+len(eosMark)+tailLen || !bytes.HasPrefix(data, []byte(headMagic)) {
		return 0, fmt.Errorf("does not begin as an Arrow file")
	}
	end := len(data) - tailLen
	if string(data[end+4:]) != tailMagic {
		return 0, fmt.Errorf("does not end as an Arrow file")
	}
	n := int64(int32(binary.LittleEndian.Uint32(data[end:])))
	if n <= digestTail || n > int64(end-len(headMagic)) {
		return 0, fmt.Errorf("footer of %d bytes", n)
	}
	return end - int(n), nil
}

// checkFooter verifies the digest over the file's tail. Only then is the footer parsed.
func checkFooter(data []byte, start int) (sum, error) {
	eos := start - len(eosMark)
	if eos < len(headMagic) || string(data[eos:start]) != eosMark {
		return sum{}, fmt.Errorf("no end-of-stream marker before the footer")
	}
	tail := data[eos:]
	field := len(tail) - tailLen - digestTail
	d := digestOf(sum{}, tail, field)
	if hex.EncodeToString(d[:]) != string(tail[field:field+digestText]) {
		return sum{}, fmt.Errorf("the footer's digest does not match")
	}
	return d, nil
}

func parseFooter(data []byte, start int) (*footer, error) {
	f := &flat{b: data[start : len(data)-tailLen]}
	root := f.root()
	out := &footer{start: int64(start), schema: root.sub(1)}
	out.dicts, out.blocks = root.blocks(2), root.blocks(3)
	kv := root.keyValues(4)
	if f.err != nil || !out.schema.ok() {
		return nil, fmt.Errorf("footer: %w", orCorrupt(f.err))
	}
	if s, ok := kv[keySegment]; ok {
		if err := json.Unmarshal([]byte(s), &out.info); err != nil {
			return nil, fmt.Errorf("footer: %w", err)
		}
	}
	list := kv[keyDigests]
	for len(list) >= digestText {
		var d sum
		if _, err := hex.Decode(d[:], []byte(list[:digestText])); err != nil {
			return nil, fmt.Errorf("footer: digests: %w", err)
		}
		out.digests, list = append(out.digests, d), list[digestText:]
	}
	return out, nil
}

func (t table) blocks(slot int) []block {
	pos, n := t.vector(slot, 24)
	out := make([]block, n)
	for i := range out {
		p := t.f.b[pos+24*i:]
		out[i] = block{
			offset:  int64(binary.LittleEndian.Uint64(p)),
			metaLen: int32(binary.LittleEndian.Uint32(p[8:])),
			bodyLen: int64(binary.LittleEndian.Uint64(p[16:])),
		}
	}
	return out
}
