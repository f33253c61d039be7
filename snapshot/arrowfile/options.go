package arrowfile

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/clefbench/clefbench/decision"
)

// Errors that callers branch on.
var (
	// ErrCorrupt is wrapped by the error of every file whose bytes are not what was
	// written; see [CorruptError] for file and offset.
	ErrCorrupt = errors.New("corrupt segment")
	// ErrSchema is wrapped when a file is whole but its columns are not those of this
	// package, or not of the kind that was asked for.
	ErrSchema = errors.New("unexpected schema")
	// ErrVersion is wrapped when a file has a schema version above this package's.
	ErrVersion = errors.New("schema version is too new")
	// ErrUnsealed is wrapped when a file that was not sealed is verified.
	ErrUnsealed = errors.New("segment is not sealed")
	// ErrBusy is wrapped by [Recover] when a living process still writes the file.
	ErrBusy = errors.New("segment is still being written")
	// ErrClosed is returned by a writer that was closed.
	ErrClosed = errors.New("writer is closed")
)

// CorruptError says where a file is corrupt. It wraps [ErrCorrupt].
type CorruptError struct {
	Path string
	// Offset is the byte at which the part starts that does not hold.
	Offset int64
	Err    error
}

// Error returns "path: byte N: what: corrupt segment".
func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: byte %d: %v: %v", e.Path, e.Offset, e.Err, ErrCorrupt)
}

// Unwrap returns [ErrCorrupt] and the cause.
func (e *CorruptError) Unwrap() []error { return []error{ErrCorrupt, e.Err} }

// Kind is the sort of row that a file holds.
type Kind string

// The row kinds.
const (
	KindSnapshot Kind = "snapshot"
	KindOutcome  Kind = "outcome"
	KindLabel    Kind = "label"
)

// Sync says when a segment is synced to the disk before it is sealed. Sealing always
// syncs. A killed process loses nothing that was written under any policy; the policies
// differ in what a crash of the machine may take.
type Sync string

// The sync policies: every SyncInterval (the default), with every batch, or only when
// sealing. Under SyncBatch a row is acknowledged once it is synced.
const (
	SyncInterval Sync = "interval"
	SyncBatch    Sync = "batch"
	SyncNever    Sync = "never"
)

// ParseSync reads never, interval or batch.
func ParseSync(s string) (Sync, error) {
	switch p := Sync(s); p {
	case SyncInterval, SyncBatch, SyncNever:
		return p, nil
	}
	return "", fmt.Errorf("unknown sync policy %q (want never, interval or batch)", s)
}

// Options configures a writer; the zero value is ready to use.
type Options struct {
	// Host and Boot name the segments. Host defaults to the machine's name; Boot to an id
	// that starts with the time, so that segments of later boots sort later.
	Host, Boot string
	// BatchRows and BatchBytes end a batch (8192 rows, 32 MiB before compression).
	BatchRows, BatchBytes int
	// SegmentBytes and SegmentAge end a segment (64 MiB, 5 minutes).
	SegmentBytes int64
	SegmentAge   time.Duration
	// Sync defaults to SyncInterval, every SyncEvery (1 second).
	Sync      Sync
	SyncEvery time.Duration
	// Schema is the capture list of a segment that ends up without rows; rows bring their
	// own.
	Schema *decision.Schema
	// Level is how hard batches are compressed, LevelFastest by default.
	Level Level
	// Seed lists labels that are known up front, by column name; it saves the new segment
	// that a label's first appearance costs.
	Seed map[string][]string
	// FeatureSets names the features of each feature set.
	FeatureSets map[string][]string
	// CaptureDigest is the digest (64 hex digits) of the capture list as it was configured,
	// redactions included, for the segments' metadata; "" where there is none.
	CaptureDigest string
	// Sampling says by which rules the rows are chosen and their keep probabilities came
	// about, for the segments' metadata: at most 4096 bytes; "" where all are kept. A
	// recorder's is recorder.Sampling.Describe.
	Sampling string
	// Replaces is the digest of the data set that is rewritten: the first segment then
	// refers to it, and to no segment that is in the directory already.
	Replaces string
	// CheckpointKey signs a checkpoint with every seal, in HOST-BOOT.checkpoint beside the
	// segments; nil signs none. See package checkpoint.
	CheckpointKey ed25519.PrivateKey
	// Now is the clock for age and interval, time.Now by default.
	Now func() time.Time
	// EntityKeyID names the key under which entities are hashed, several joined by commas;
	// Redaction says what was done about secrets. They are stored as they are, and
	// [Writer.SetOrigin] sets them too.
	EntityKeyID, Redaction string
	// FS is the file system, the operating system's by default.
	FS FS
}

// Level is a compression level of zstd. All readers read all of them at the same speed.
type Level string

// The levels. Fastest is for recording; the others take more CPU and make smaller files,
// for data that is written once more: storage at rest, see docs/formats/segment.md.
const (
	LevelFastest Level = "fastest"
	LevelDefault Level = "default"
	LevelBetter  Level = "better"
	LevelBest    Level = "best"
)

// ParseLevel reads fastest, default, better or best.
func ParseLevel(s string) (Level, error) {
	switch l := Level(s); l {
	case LevelFastest, LevelDefault, LevelBetter, LevelBest:
		return l, nil
	}
	return "", fmt.Errorf("unknown compression level %q (want fastest, default, better or best)", s)
}

// zstd returns the library's level, and how far back matches are looked for. Every zstd
// decoder takes windows of 8 MiB. The fastest level's table holds places of the last 100
// KiB or so in any case, and half a MiB stays in a processor's cache: twice that takes 0.6 %
// off the benchmark's inputs.
func (l Level) zstd() (level zstd.EncoderLevel, window int) {
	switch l {
	case LevelDefault:
		return zstd.SpeedDefault, 8 << 20
	case LevelBetter:
		return zstd.SpeedBetterCompression, 8 << 20
	case LevelBest:
		return zstd.SpeedBestCompression, 8 << 20
	}
	return zstd.SpeedFastest, 512 << 10
}

// maxBatchRows keeps batches of a size that every reader takes.
const maxBatchRows = 1 << 16

// maxSamplingText bounds Options.Sampling.
const maxSamplingText = 4096

func (o Options) withDefaults() (Options, error) {
	setDefault(&o.BatchRows, 8192)
	setDefault(&o.BatchBytes, 32<<20)
	setDefault(&o.SegmentBytes, 64<<20)
	setDefault(&o.SegmentAge, 5*time.Minute)
	setDefault(&o.Sync, SyncInterval)
	setDefault(&o.SyncEvery, time.Second)
	setDefault(&o.Level, LevelFastest)
	if _, err := ParseLevel(string(o.Level)); err != nil {
		return o, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.FS == nil {
		o.FS = osFS{}
	}
	if _, err := ParseSync(string(o.Sync)); err != nil {
		return o, err
	}
	if o.BatchRows < 1 || o.BatchRows > maxBatchRows {
		return o, fmt.Errorf("batch of %d rows (want 1 to %d)", o.BatchRows, maxBatchRows)
	}
	if o.BatchBytes < 1 || o.BatchBytes > maxRowBytes {
		return o, fmt.Errorf("batch of %d bytes (want 1 to %d)", o.BatchBytes, maxRowBytes)
	}
	if o.SegmentBytes < 1 || o.SegmentAge < 1 || o.SyncEvery < 1 {
		return o, fmt.Errorf("segment size, segment age and sync interval must be positive")
	}
	for _, d := range []string{o.CaptureDigest, o.Replaces} {
		if _, err := hex.DecodeString(d); err != nil || (d != "" && len(d) != digestText) {
			return o, fmt.Errorf("%q is not a digest of %d hex digits", d, digestText)
		}
	}
	if len(o.Sampling) > maxSamplingText || !utf8.ValidString(o.Sampling) {
		return o, fmt.Errorf("sampling rules of %d bytes (want at most %d, as UTF-8)", len(o.Sampling), maxSamplingText)
	}
	if n := len(o.CheckpointKey); n != 0 && n != ed25519.PrivateKeySize {
		return o, fmt.Errorf("checkpoint key of %d bytes (want %d)", n, ed25519.PrivateKeySize)
	}
	return o.withNames()
}

func setDefault[T comparable](v *T, def T) {
	if *v == *new(T) {
		*v = def
	}
}

func (o Options) withNames() (Options, error) {
	if o.Host == "" {
		h, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("host name: %w", err)
		}
		o.Host = cleanName(h)
	}
	if o.Boot == "" {
		var random [4]byte
		_, _ = rand.Read(random[:]) // never fails since Go 1.24
		o.Boot = fmt.Sprintf("%012x%s", o.Now().UnixMilli(), hex.EncodeToString(random[:]))
	}
	for _, name := range []string{o.Host, o.Boot} {
		if name != cleanName(name) {
			return o, fmt.Errorf("%q is not a name of letters, digits, dot, dash and underscore", name)
		}
	}
	return o, nil
}

// cleanName replaces what has no place in a file name.
func cleanName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 128 && (r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, s)
	return strings.TrimLeft(s, ".")
}

// Extensions of files.
const (
	// Ext is the extension of a sealed file; OpenExt is appended while it is written.
	Ext     = ".arrow"
	OpenExt = ".open"
)

// segmentName is zero-padded, so that the order of names is the order of writing.
func segmentName(o *Options, seq int) string {
	return fmt.Sprintf("%s-%s-%08d%s", o.Host, o.Boot, seq, Ext)
}

// SegmentOf returns the name by which rows refer to a file: without directory and
// extensions.
func SegmentOf(path string) string {
	if i := strings.LastIndexAny(path, "/"+string(os.PathSeparator)); i >= 0 {
		path = path[i+1:]
	}
	return strings.TrimSuffix(strings.TrimSuffix(path, OpenExt), Ext)
}
