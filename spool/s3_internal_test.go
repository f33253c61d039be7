package spool

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// s3URL is a fresh prefix on the server that .ci/s3.sh starts.
func s3URL(t *testing.T) string {
	endpoint := os.Getenv("CLEFBENCH_S3_ENDPOINT")
	if endpoint == "" {
		t.Skip("CLEFBENCH_S3_ENDPOINT is not set; .ci/s3.sh starts a server and sets it")
	}
	return fmt.Sprintf("s3://%s/spool-%d?endpoint=%s", os.Getenv("CLEFBENCH_S3_BUCKET"), time.Now().UnixNano(), url.QueryEscape(endpoint))
}

func s3Store(t *testing.T) *bucketStore {
	target, err := parseTarget(s3URL(t))
	if err != nil {
		t.Fatal(err)
	}
	st, err := openS3(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// body is a file with bytes of its own, and the object that they make.
func body(t *testing.T, key string, size int) (*object, *os.File) {
	t.Helper()
	data := make([]byte, size)
	rand.Read(data)
	f, err := os.Create(filepath.Join(t.TempDir(), "body"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.WriteAt(data, 0); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	text := hex.EncodeToString(sum[:])
	return &object{key: key, size: int64(size), sum: text, meta: map[string]string{metaSum: text}}, f
}

func TestS3UploadsEverything(t *testing.T) {
	dir := t.TempDir()
	want := writeSegments(t, dir, "web-1", 8, 20)
	st := s3Store(t)
	s, err := start(dir, testOptions(t), unclosed{st})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(within(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
	for name, data := range want {
		if !bytes.Equal(content(t, st, keyFor(name)), data) {
			t.Errorf("%s differs", name)
		}
	}
	if got := s.Stats(); got.Uploaded != 8 || got.Failures != 0 || got.Present != 0 {
		t.Errorf("stats %+v", got)
	}
}

// One of many writers of a key wins, whatever the size: the bodies are below and above
// what gocloud.dev sends in one part.
func TestS3OneWinner(t *testing.T) {
	st := s3Store(t)
	for _, size := range []int{100, 3 << 20, 20 << 20} {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var sums []string
		key := fmt.Sprintf("race/%d", size)
		for range 6 {
			o, f := body(t, key, size)
			wg.Go(func() {
				v, err := put(context.Background(), st, o, f, false)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && v == stored:
					sums = append(sums, o.sum)
				case !errors.Is(err, ErrConflict):
					t.Errorf("%d bytes: verdict %v, error %v", size, v, err)
				}
			})
		}
		wg.Wait()
		if len(sums) != 1 {
			t.Fatalf("%d bytes: %d winners", size, len(sums))
		}
		got := sha256.Sum256(content(t, st, key))
		if hex.EncodeToString(got[:]) != sums[0] {
			t.Errorf("%d bytes: the object is not the winner's", size)
		}
	}
}

// A second writer of the same bytes is told that they are there.
func TestS3Repeated(t *testing.T) {
	st := s3Store(t)
	o, f := body(t, "again", 6<<20)
	for i, want := range []verdict{stored, present, present} {
		if _, err := f.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
		if got, err := put(t.Context(), st, o, f, i == 2); err != nil || got != want {
			t.Errorf("write %d: verdict %v, error %v", i, got, err)
		}
	}
}

// The server holds the body to its digest: what changes on the way is refused.
func TestS3ChecksBody(t *testing.T) {
	st := s3Store(t)
	o, _ := body(t, "changed", 1<<20)
	_, other := body(t, "", 1<<20)
	if err := st.create(t.Context(), o, other); err == nil {
		t.Error("another body than its digest says was taken")
	}
	if _, _, err := st.stat(t.Context(), o.key); !errors.Is(err, errAbsent) {
		t.Errorf("after a refused body: %v", err)
	}
}

func TestS3Faults(t *testing.T) {
	dir := t.TempDir()
	want := writeSegments(t, dir, "web-1", 6, 5)
	st := s3Store(t)
	o := testOptions(t)
	faults := []fault{failsBefore, losesReply, works, reset, works}
	s, err := start(dir, o, withFaults(unclosed{st}, func(n int, _ string) fault { return faults[n%len(faults)] }))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(within(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
	for name, data := range want {
		if !bytes.Equal(content(t, st, keyFor(name)), data) {
			t.Errorf("%s differs", name)
		}
	}
}

// A refused key is an error that repeats no credential.
func TestS3WrongKey(t *testing.T) {
	raw := s3URL(t)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2hunter2hunter2")
	dir := t.TempDir()
	writeSegments(t, dir, "web-1", 1, 5)
	s, err := Open(t.Context(), dir, Options{URL: raw, Poll: time.Millisecond, RetryBase: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Close(within(t, 2*time.Second))
	if !errors.Is(err, ErrPending) || len(entries(t, dir)) != 1 {
		t.Errorf("error %v", err)
	}
	for _, text := range []string{s.Stats().LastError, fmt.Sprint(err)} {
		if text == "" || strings.Contains(text, "hunter2") || strings.Contains(text, os.Getenv("AWS_ACCESS_KEY_ID")) {
			t.Errorf("error text %q", text)
		}
	}
}
