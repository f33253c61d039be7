package spool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// errAbsent is wrapped when there is no object under a key.
var errAbsent = errors.New("no such object")

// store is a bucket, as far as a spool needs one.
type store interface {
	// create writes an object, whole or not at all, unless there is one under its key. After
	// an error nobody knows whether it did.
	create(ctx context.Context, o *object, body *os.File) error
	// stat returns an object's size and the SHA-256 that its metadata states, "" without;
	// the error wraps errAbsent when there is no object.
	stat(ctx context.Context, key string) (size int64, sum string, err error)
	// open reads an object; the error is as that of stat.
	open(ctx context.Context, key string) (io.ReadCloser, error)
}

// verdict says how a segment got into the bucket.
type verdict int

const (
	stored verdict = iota
	// present: the object was there already, and is the same.
	present
)

// put returns nil only when the bucket is known to hold the very bytes of the object.
// suspect: an earlier attempt, perhaps of a killed process, may have stored it.
func put(ctx context.Context, s store, o *object, body *os.File, suspect bool) (verdict, error) {
	if suspect {
		// Whatever else goes wrong here, create decides: a role that may not list is told of
		// an absent object that it is forbidden.
		if err := compare(ctx, s, o); err == nil || errors.Is(err, ErrConflict) {
			return present, err
		}
	}
	err := s.create(ctx, o, body)
	if err == nil {
		return stored, confirm(ctx, s, o)
	}
	// A lost reply looks as a lost request does, and a server that refuses a large body may
	// close the connection before its answer is read. Only the object itself can tell.
	switch back := compare(ctx, s, o); {
	case back == nil:
		return present, nil
	case errors.Is(back, errAbsent):
		return 0, err
	case errors.Is(back, ErrConflict):
		return 0, back
	default:
		return 0, errors.Join(err, back)
	}
}

// confirm checks an object that was just written without an error.
func confirm(ctx context.Context, s store, o *object) error {
	size, sum, err := s.stat(ctx, o.key)
	if err != nil {
		return fmt.Errorf("%s: after it was written: %w", o.key, err)
	}
	if size == o.size && sum == o.sum {
		return nil
	}
	return compare(ctx, s, o)
}

// compare reads the whole object back.
func compare(ctx context.Context, s store, o *object) error {
	r, err := s.open(ctx, o.key)
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.Copy(h, io.LimitReader(r, o.size+1))
	if err := errors.Join(err, r.Close()); err != nil {
		return fmt.Errorf("%s: read back: %w", o.key, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != o.sum {
		return &ConflictError{Key: o.key, Want: o.sum, Got: got}
	}
	return nil
}
