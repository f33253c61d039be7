package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

func TestUploadsEverything(t *testing.T) {
	for name, st := range stores(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			want := writeSegments(t, dir, "web-1", 3, 10)
			s, err := start(dir, testOptions(t), unclosed{st})
			if err != nil {
				t.Fatal(err)
			}
			later := writeSegments(t, dir, "web-2", 3, 10)
			if err := s.Close(within(t, 20*time.Second)); err != nil {
				t.Fatal(err)
			}
			for _, set := range []map[string][]byte{want, later} {
				for name, data := range set {
					if !bytes.Equal(content(t, st, keyFor(name)), data) {
						t.Errorf("%s differs", name)
					}
				}
			}
			got := s.Stats()
			if left := entries(t, dir); len(left) > 0 {
				t.Errorf("left in the directory: %q", left)
			}
			if got.Uploaded != 6 || got.Rows != 60 || got.Present != 0 || got.Pending != 0 || got.PendingBytes != 0 || got.Failures != 0 {
				t.Errorf("stats %+v", got)
			}
		})
	}
}

// Whatever the store does, and in whatever order: every segment ends up in it, byte for
// byte, and none is deleted before.
func TestFaultsLoseNothing(t *testing.T) {
	faults := []fault{failsBefore, losesReply, reset, hangs, works, losesReply, failsBefore, works, reset, works}
	for name, st := range stores(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			want := writeSegments(t, dir, "web-1", 6, 5)
			o := testOptions(t)
			o.Timeout = 50 * time.Millisecond
			faulty := withFaults(st, func(n int, key string) fault {
				if _, err := os.Stat(filepath.Join(dir, filepath.Base(key))); err != nil {
					t.Errorf("attempt %d: the segment is gone while it is uploaded: %v", n, err)
				}
				return faults[n%len(faults)]
			})
			s, err := start(dir, o, faulty)
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
			got := s.Stats()
			if got.Uploaded != 6 || got.Failures == 0 || got.Present == 0 || got.LastError == "" {
				t.Errorf("stats %+v", got)
			}
		})
	}
}

// A store that never answers well deletes nothing, and Close says what is left.
func TestStoreAway(t *testing.T) {
	dir := t.TempDir()
	want := writeSegments(t, dir, "web-1", 3, 5)
	st := withFaults(stores(t)["mem"], func(n int, _ string) fault { return []fault{failsBefore, reset}[n%2] })
	s, err := start(dir, testOptions(t), st)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Close(within(t, 100*time.Millisecond))
	if !errors.Is(err, ErrPending) || !errors.Is(err, errInjected) {
		t.Errorf("error %v", err)
	}
	if left := entries(t, dir); len(left) != len(want) {
		t.Errorf("left %q", left)
	}
	if got := s.Stats(); got.Uploaded != 0 || got.Pending != 3 || got.PendingBytes == 0 || got.OldestPending <= 0 {
		t.Errorf("stats %+v", got)
	}
}

// Another object under the key is left as it is, and so is the segment; others go on.
func TestConflict(t *testing.T) {
	for name, st := range stores(t) {
		t.Run(name, func(t *testing.T) {
			dir, other := t.TempDir(), t.TempDir()
			want := writeSegments(t, dir, "web-1", 2, 5)
			names := entries(t, dir)
			squatter := filepath.Join(other, "x")
			if err := os.WriteFile(squatter, []byte("another object"), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(squatter)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := st.create(t.Context(), &object{key: keyFor(names[0])}, f); err != nil {
				t.Fatal(err)
			}
			s, err := start(dir, testOptions(t), unclosed{st})
			if err != nil {
				t.Fatal(err)
			}
			err = s.Close(within(t, 20*time.Second))
			var conflict *ConflictError
			if !errors.As(err, &conflict) || !errors.Is(err, ErrConflict) || !errors.Is(err, ErrPending) || conflict.Key != keyFor(names[0]) {
				t.Fatalf("error %v", err)
			}
			if got := content(t, st, keyFor(names[0])); string(got) != "another object" {
				t.Errorf("the object was overwritten: %q", got)
			}
			if !bytes.Equal(content(t, st, keyFor(names[1])), want[names[1]]) {
				t.Error("the other segment differs")
			}
			if left := entries(t, dir); !slices.Equal(left, names[:1]) {
				t.Errorf("left %q, want %q", left, names[:1])
			}
			if got := s.Stats(); got.Conflicts != 1 || got.Uploaded != 1 || got.Pending != 1 {
				t.Errorf("stats %+v", got)
			}
		})
	}
}

// A clean reply is not believed: a store that kept other bytes is found out.
func TestConfirmReadsBack(t *testing.T) {
	dir := t.TempDir()
	writeSegments(t, dir, "web-1", 1, 5)
	s, err := start(dir, testOptions(t), lossyStore{stores(t)["mem"]})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(within(t, 5*time.Second)); !errors.Is(err, ErrConflict) {
		t.Errorf("error %v", err)
	}
	if left := entries(t, dir); len(left) != 1 {
		t.Errorf("left %q", left)
	}
}

// lossyStore keeps half of each object and says that all is well.
type lossyStore struct{ store }

func (l lossyStore) create(ctx context.Context, o *object, body *os.File) error {
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp("", "half")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(data[:len(data)/2]); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return l.store.create(ctx, o, f)
}

func TestCorruptSegmentStays(t *testing.T) {
	dir := t.TempDir()
	want := writeSegments(t, dir, "web-1", 2, 5)
	names := entries(t, dir)
	data := bytes.Clone(want[names[0]])
	data[len(data)/2] ^= 1
	if err := os.WriteFile(filepath.Join(dir, names[0]), data, 0o600); err != nil {
		t.Fatal(err)
	}
	st := stores(t)["dir"]
	o := testOptions(t)
	o.MaxBytes = 1
	s, err := start(dir, o, unclosed{st})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Await(within(t, 5*time.Second)); err != nil {
		t.Errorf("what can never go shuts the others out: %v", err)
	}
	if err := s.Close(within(t, 5*time.Second)); !errors.Is(err, arrowfile.ErrCorrupt) || !errors.Is(err, ErrPending) {
		t.Errorf("error %v", err)
	}
	if got := s.Stats(); got.Unreadable != 1 || got.Uploaded != 1 {
		t.Errorf("stats %+v", got)
	}
	if _, err := st.open(t.Context(), keyFor(names[0])); !errors.Is(err, errAbsent) {
		t.Errorf("a corrupt segment was uploaded: %v", err)
	}
}

func TestKeep(t *testing.T) {
	dir := t.TempDir()
	want := writeSegments(t, dir, "web-1", 2, 5)
	o := testOptions(t)
	o.Keep = true
	for range 2 { // the second finds nothing to do
		s, err := start(dir, o, unclosed{stores(t)["mem"]})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(within(t, 5*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range want {
		if got, err := os.ReadFile(filepath.Join(dir, UploadedDir, name)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left := entries(t, dir); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}

func TestSalvagesDeadWriters(t *testing.T) {
	dir := t.TempDir()
	w, err := arrowfile.Create(dir, arrowfile.Options{Host: "dead", Boot: "boot"})
	if err != nil {
		t.Fatal(err)
	}
	alive, err := arrowfile.Create(dir, arrowfile.Options{Host: "alive", Boot: "boot"})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []*arrowfile.Writer{w, alive} {
		if err := w.Append(testRow(1)); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(snapshot.Ledger{}); err != nil {
			t.Fatal(err)
		}
	}
	// The dead one's lock goes with its process: here, a copy of the file has none.
	path := filepath.Join(dir, "dead-boot-00000001.arrow.open")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), os.WriteFile(path, data, 0o600),
		os.WriteFile(filepath.Join(dir, "young-boot-00000001.arrow.open"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	st := stores(t)["dir"]
	s, err := start(dir, testOptions(t), unclosed{st})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(within(t, 5*time.Second)); err != nil {
		t.Fatal(err)
	}
	if got := s.Stats(); got.Salvaged != 1 || got.Uploaded != 1 || got.LastError != "" {
		t.Errorf("stats %+v", got)
	}
	want := []string{"alive-boot-00000001.arrow.open", "young-boot-00000001.arrow.open"}
	if left := entries(t, dir); !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
	if err := alive.Close(snapshot.Ledger{}, snapshot.Ledger{Offered: 1, Written: 1}); err != nil {
		t.Error(err)
	}
}

// Several spools on one directory and one bucket: each segment is taken once.
func TestManySpoolsOneDirectory(t *testing.T) {
	for name, st := range stores(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			want := writeSegments(t, dir, "web-1", 20, 5)
			var all []*Spool
			for range 4 {
				s, err := start(dir, testOptions(t), unclosed{st})
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, s)
			}
			var uploaded, failures uint64
			for _, s := range all {
				if err := s.Close(within(t, 20*time.Second)); err != nil {
					t.Error(err)
				}
				uploaded += s.Stats().Uploaded
				failures += s.Stats().Failures
			}
			if uploaded != 20 || failures != 0 {
				t.Errorf("%d segments uploaded by all, %d failures", uploaded, failures)
			}
			for name, data := range want {
				if !bytes.Equal(content(t, st, keyFor(name)), data) {
					t.Errorf("%s differs", name)
				}
			}
		})
	}
}

func TestKeyOf(t *testing.T) {
	for _, test := range []struct {
		meta arrowfile.Meta
		want string
	}{
		{arrowfile.Meta{Segment: "a-b-1", MinTime: time.Date(2026, 1, 1, 0, 30, 0, 0, time.FixedZone("", 3600))}, "full/dt=2025-12-31/svc/a-b-1.arrow"},
		{arrowfile.Meta{Segment: "a-b-1", Boot: "019d0000000012345678"}, "full/dt=" + time.UnixMilli(0x019d00000000).UTC().Format(time.DateOnly) + "/svc/a-b-1.arrow"},
		{arrowfile.Meta{Segment: "a-b-1", Boot: "my-own-boot-id"}, "full/dt=1970-01-01/svc/a-b-1.arrow"},
		{arrowfile.Meta{Segment: "a-b-1", Boot: "ffffffffffffffff"}, "full/dt=1970-01-01/svc/a-b-1.arrow"},
	} {
		if got := keyOf(&test.meta, "svc"); got != test.want {
			t.Errorf("key %q, want %q", got, test.want)
		}
	}
}

func TestMetadata(t *testing.T) {
	dir := t.TempDir()
	writeSegments(t, dir, "web-1", 1, 7)
	name := entries(t, dir)
	b := stores(t)["mem"].(*bucketStore)
	s, err := start(dir, testOptions(t), unclosed{b})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(within(t, 5*time.Second)); err != nil {
		t.Fatal(err)
	}
	a, err := b.bucket.Attributes(t.Context(), b.prefix+keyFor(name[0]))
	if err != nil {
		t.Fatal(err)
	}
	if a.Metadata["rows"] != "7" || len(a.Metadata["sha256"]) != 64 || a.Metadata["min-ts-ns"] != fmt.Sprint(testDay.UnixNano()) ||
		a.Metadata["max-ts-ns"] != fmt.Sprint(testDay.Add(6*time.Millisecond).UnixNano()) || a.ContentType != contentType {
		t.Errorf("attributes %+v", a)
	}
}

func TestDelay(t *testing.T) {
	o := Options{RetryBase: time.Second, RetryMax: 10 * time.Second, Random: func() float64 { return 0.999999 }}
	for attempts, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 8 * time.Second, 5: 10 * time.Second, 40: 10 * time.Second, 1000: 10 * time.Second} {
		if got := o.delay(attempts); got > want || got < want*99/100 {
			t.Errorf("attempt %d: %v, want just below %v", attempts, got, want)
		}
	}
	o.Random = func() float64 { return 0 }
	if got := o.delay(5); got != 0 {
		t.Errorf("no jitter: %v", got)
	}
}

func TestScrub(t *testing.T) {
	if got := scrub("denied for AKIA" + "QWERTYUIOPASDFGH, Authorization: Bearer abcdefghijklmnopqrstuvwxyz012345"); strings.Contains(got, "QWERTY") || strings.Contains(got, "abcdefgh") {
		t.Errorf("scrubbed %q", got)
	}
	got := scrub(`Put "https://user:hunter2@host/b?X-Amz-Signature=secret&x=y": refused; see http://h/p?token=secret end` + strings.Repeat("x", 2000))
	if strings.Contains(got, "hunter2") || strings.Contains(got, "secret") || len(got) > maxErrorText+3 || !strings.Contains(got, "refused; see http://h/p? end") {
		t.Errorf("scrubbed %q", got)
	}
}
