package spool

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"
)

// Errors that callers branch on.
var (
	// ErrOptions is wrapped by the errors of [Open] that another configuration avoids.
	ErrOptions = errors.New("spool options")
	// ErrPending is wrapped by the error of [Spool.Close] when segments are left in the
	// directory.
	ErrPending = errors.New("segments are not uploaded")
	// ErrConflict is wrapped when the bucket holds other bytes under a segment's key.
	ErrConflict = errors.New("the bucket holds another object under this key")
	// ErrClosed is returned by Await after Close.
	ErrClosed = errors.New("spool is closed")
)

// ConflictError names the object that is not the segment it is named after. It wraps
// [ErrConflict]. Nothing is overwritten, and the segment stays in the directory.
type ConflictError struct {
	Key string
	// Want and Got are the SHA-256 of the segment and of the object, in hex.
	Want, Got string
}

// Error returns "key: the bucket holds another object under this key: sha256 ...".
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s: %v: sha256 %s, the segment has %s", e.Key, ErrConflict, e.Got, e.Want)
}

// Unwrap returns [ErrConflict].
func (e *ConflictError) Unwrap() error { return ErrConflict }

// DropFull is the reason under which a recorder counts rows that a full spool refused.
const DropFull = "spool-full"

// FullError is the error of a row that a full spool refused.
type FullError struct {
	// Pending bytes wait for their upload; Max is the limit.
	Pending, Max int64
}

// Error returns "N bytes wait for their upload, at most M may: spool is full".
func (e *FullError) Error() string {
	return fmt.Sprintf("%d bytes wait for their upload, at most %d may: spool is full", e.Pending, e.Max)
}

// DropReason returns [DropFull], for the recorder's ledger.
func (e *FullError) DropReason() string { return DropFull }

// Defaults of [Options].
const (
	DefaultService   = "default"
	DefaultMaxBytes  = 4 << 30
	DefaultParallel  = 4
	DefaultPoll      = time.Second
	DefaultTimeout   = 2 * time.Minute
	DefaultRetryBase = 500 * time.Millisecond
	DefaultRetryMax  = time.Minute
)

// Options configure a [Spool]; the zero value of a field but URL is its default.
type Options struct {
	// URL is file:///dir, whose directory must exist, or s3://bucket/prefix with the
	// parameters region, endpoint, profile, use_path_style, dualstack, fips, ssetype and
	// kmskeyid. It must not hold credentials: they come from the AWS default chain.
	URL string
	// Service is the part of the key after the date: letters, digits, dot, dash and
	// underscore.
	Service string
	// MaxBytes is how many bytes of sealed segments may wait for their upload before
	// [Spool.Wrap] refuses rows. The segment being written comes on top.
	MaxBytes int64
	// Keep moves uploaded segments to the subdirectory [UploadedDir] instead of deleting
	// them.
	Keep bool
	// Parallel bounds the uploads at one time. While the last attempt failed it is 1.
	Parallel int
	// Poll is how often the directory is looked at; a wrapped sink's Flush prompts it, too.
	Poll time.Duration
	// Timeout bounds one attempt to upload one segment.
	Timeout time.Duration
	// The wait before attempt n is uniform in [0, min(RetryMax, RetryBase*2^(n-1))).
	RetryBase, RetryMax time.Duration
	// Logger hears of failures, at most one a minute while they go on. Nil is silent.
	Logger *slog.Logger
	// Now is the clock. Random draws from [0,1), and must be safe for concurrent use.
	Now    func() time.Time
	Random func() float64
}

func orDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

func (o Options) withDefaults() (Options, error) {
	orDefault(&o.Service, DefaultService)
	orDefault(&o.MaxBytes, DefaultMaxBytes)
	orDefault(&o.Parallel, DefaultParallel)
	orDefault(&o.Poll, DefaultPoll)
	orDefault(&o.Timeout, DefaultTimeout)
	orDefault(&o.RetryBase, DefaultRetryBase)
	orDefault(&o.RetryMax, DefaultRetryMax)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	switch {
	case o.MaxBytes < 0 || o.Parallel < 0 || min(o.Poll, o.Timeout, o.RetryBase, o.RetryMax) < 0:
		return o, fmt.Errorf("%w: a negative limit", ErrOptions)
	case !plainName(o.Service):
		return o, fmt.Errorf("%w: service %q is not a name of letters, digits, dot, dash and underscore", ErrOptions, o.Service)
	}
	return o, nil
}

// plainName: the name can stand in a path and in a key without any escape.
func plainName(s string) bool {
	return s != "" && s[0] != '.' && strings.IndexFunc(s, func(r rune) bool {
		return !(r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}) < 0
}

// delay is the wait after a number of failed attempts: full jitter, so that hosts that
// failed together do not come back together.
func (o *Options) delay(attempts int) time.Duration {
	limit := o.RetryMax
	if n := attempts - 1; n < 32 && o.RetryBase<<n < limit && o.RetryBase<<n > 0 {
		limit = o.RetryBase << n
	}
	return time.Duration(o.Random() * float64(limit))
}
