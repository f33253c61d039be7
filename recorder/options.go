package recorder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

// Policy says what becomes of a request's rows when the queue is full.
type Policy string

// The policies. PolicyDrop, the default, counts the rows as dropped and returns at
// once. PolicyBlock waits for room, at most Options.BlockTimeout and never past the
// context; it is for imports, where losing a row is worse than waiting.
const (
	PolicyDrop  Policy = "drop"
	PolicyBlock Policy = "block"
)

// Defaults of [Options].
const (
	DefaultQueueRows     = 8192
	DefaultQueueBytes    = 64 << 20
	DefaultMaxBody       = 64 << 10
	DefaultFlushInterval = time.Second
	DefaultFlushRows     = 8192
	DefaultBlockTimeout  = time.Second
)

// minKey is the shortest key that New takes: 128 bits.
const minKey = 16

// ErrOptions is wrapped by every error of [New].
var ErrOptions = errors.New("recorder options")

// Options configure a [Recorder]; the zero value of a field is its default.
type Options struct {
	// Capture is the allow-list of what is recorded of a request. The zero value records
	// decisions without attributes.
	Capture Capture
	// EntityKey keys every hash that is stored: entity, hashed attributes, body digests.
	// At least 16 bytes. It is required by a capture list that names an entity source or
	// hashes an attribute: a key made up at start would give the same user another hash
	// after each restart, and an unkeyed hash of a user name is as good as the name.
	// Without a key no digest of a body is stored.
	EntityKey []byte
	// EntityKeyID names the key; segments say under which key their entities are hashed,
	// because one entity has another hash under each. The default is [KeyID].
	EntityKeyID string
	// Scenario and Backend are recorded where neither the handler nor a wrapped backend
	// sets its own.
	Scenario, Backend string

	// QueueRows (at most 1<<22) and QueueBytes (of bodies) bound what waits for the sink.
	QueueRows  int
	QueueBytes int64
	// MaxBody bounds the stored bytes of each body; what is longer is cut, and says so.
	MaxBody int
	// FlushInterval and FlushRows bound how much may stand unacknowledged.
	FlushInterval time.Duration
	FlushRows     int
	Policy        Policy
	BlockTimeout  time.Duration

	// SampleRate keeps this share of the requests, in (0,1]; 0 means all. The rows of a
	// request are kept or left together, and carry the rate as their keep_prob.
	SampleRate float64
	// Sampling says what is kept beyond that, and how the draw is made.
	Sampling Sampling
	// Random draws from [0,1) for the sampling; it must be safe for concurrent use.
	Random func() float64
	// Clock must be safe for concurrent use, and monotonic as time.Now is.
	Clock func() time.Time
	// CPUTime reads the processor time that the current thread has used. When set, Wrap
	// locks the OS thread around each decision and records the difference as usage.cpu.
	CPUTime func() time.Duration
	// TraceFromContext returns the ids of the trace and span that a context belongs to, as a
	// tracing library keeps them there; ok is false where there are none. They go before a
	// traceparent header. It must be safe for concurrent use and not block.
	TraceFromContext func(ctx context.Context) (trace [16]byte, span [8]byte, ok bool)
	// KillFile switches recording and shadows off while a file of this path exists: it is
	// looked for by New and once a FlushInterval. See [Recorder.SetRecording].
	KillFile string
	// Logger hears of drops, failures of the sink and contained panics, at most once a
	// flush and never on a caller's goroutine. Nil is silent.
	Logger *slog.Logger
}

func (o *Options) validate() error {
	switch {
	case len(o.EntityKey) > 0 && len(o.EntityKey) < minKey:
		return fmt.Errorf("%w: the entity key has %d bytes, fewer than %d", ErrOptions, len(o.EntityKey), minKey)
	case min(o.QueueRows, o.MaxBody, o.FlushRows) < 0 || o.QueueBytes < 0 || min(o.FlushInterval, o.BlockTimeout) < 0:
		return fmt.Errorf("%w: a negative limit", ErrOptions)
	case o.QueueRows > maxQueueRows:
		return fmt.Errorf("%w: a queue of %d rows, more than %d", ErrOptions, o.QueueRows, maxQueueRows)
	case o.Policy != "" && o.Policy != PolicyDrop && o.Policy != PolicyBlock:
		return fmt.Errorf("%w: policy %q (want drop or block)", ErrOptions, o.Policy)
	}
	if err := checkKeyID(o.EntityKeyID, len(o.EntityKey) > 0); err != nil {
		return err
	}
	if len(o.EntityKey) == 0 {
		if what := o.Capture.needsKey(); what != "" {
			return fmt.Errorf("%w: %s needs an entity key", ErrOptions, what)
		}
	}
	return nil
}

func orDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

func (o *Options) applyDefaults() {
	orDefault(&o.QueueRows, DefaultQueueRows)
	orDefault(&o.QueueBytes, DefaultQueueBytes)
	orDefault(&o.MaxBody, DefaultMaxBody)
	orDefault(&o.FlushInterval, DefaultFlushInterval)
	orDefault(&o.FlushRows, DefaultFlushRows)
	orDefault(&o.Policy, PolicyDrop)
	orDefault(&o.BlockTimeout, DefaultBlockTimeout)
	orDefault(&o.SampleRate, 1)
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.EntityKey = append([]byte(nil), o.EntityKey...)
	orDefault(&o.EntityKeyID, KeyID(o.EntityKey))
}
