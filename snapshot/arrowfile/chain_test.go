package arrowfile

import (
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/checkpoint"
)

// boot writes one segment a row into a directory, and returns the metadata of the
// directory's files by segment.
func boot(t *testing.T, dir string, rows int, o Options) map[string]Meta {
	t.Helper()
	o.SegmentBytes, o.BatchRows = 1, 1
	w, err := Create(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for range rows {
		if err := w.Append(plainRow("s", "a")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(snapshot.Ledger{}, totalOf(rows)); err != nil {
		t.Fatal(err)
	}
	return metas(t, dir)
}

func metas(t *testing.T, dir string) map[string]Meta {
	t.Helper()
	out := map[string]Meta{}
	for _, p := range segments(t, dir) {
		r, err := Verify(p)
		if err != nil {
			t.Fatal(err)
		}
		out[SegmentOf(p)] = r.Meta
		tail, err := readTail(p)
		if err != nil || tail.Digest != r.Meta.Digest || !reflect.DeepEqual(tail.Previous, r.Meta.Previous) || tail.Rows != r.Meta.Rows {
			t.Errorf("the footer alone says %+v, %v; the file %+v", tail, err, r.Meta)
		}
	}
	return out
}

// follows checks that a segment refers to another one, which is the n-th of its chain.
func follows(t *testing.T, all map[string]Meta, name, before string, n int64) {
	t.Helper()
	want := &Link{Length: n}
	if before != "" {
		want.Segment, want.Digest = before, all[before].Digest
	}
	if got := all[name].Previous; !reflect.DeepEqual(got, want) || before != "" && len(want.Digest) != 64 {
		t.Errorf("%s: link %+v, want %+v", name, got, want)
	}
}

func TestSegmentsFollowEachOther(t *testing.T) {
	dir := t.TempDir()
	boot(t, dir, 3, Options{Host: "h", Boot: "b1"})
	boot(t, dir, 1, Options{Host: "h-b1", Boot: "x"}) // another host, by its metadata only
	all := boot(t, dir, 2, Options{Host: "h", Boot: "b2"})
	follows(t, all, "h-b1-00000001", "", 0)
	follows(t, all, "h-b1-00000002", "h-b1-00000001", 1)
	follows(t, all, "h-b1-00000003", "h-b1-00000002", 2)
	follows(t, all, "h-b1-x-00000001", "", 0)
	follows(t, all, "h-b2-00000001", "h-b1-00000003", 3)
	follows(t, all, "h-b2-00000002", "h-b2-00000001", 4)

	// A file that is damaged at its end is passed over, when nothing else tells of it; a
	// rewritten set refers to what it was made of.
	if err := os.Truncate(filepath.Join(dir, "h-b2-00000002"+Ext), 100); err != nil {
		t.Fatal(err)
	}
	w, err := Create(dir, Options{Host: "h", Boot: "b3"})
	if err != nil || w.link != (Link{Segment: "h-b2-00000002", Digest: all["h-b2-00000002"].Digest, Length: 5}) {
		t.Errorf("%v: %+v", err, w.link)
	}
	if err := os.Remove(chainPath(dir, "h")); err != nil {
		t.Fatal(err)
	}
	w, err = Create(dir, Options{Host: "h", Boot: "b3"})
	if err != nil || w.link.Segment != "h-b2-00000001" || w.link.Length != 4 {
		t.Errorf("%v: %+v", err, w.link)
	}
	w, err = Create(dir, Options{Host: "h", Boot: "b4", Replaces: strings.Repeat("7", 64)})
	if err != nil || w.link != (Link{Replaces: strings.Repeat("7", 64)}) {
		t.Errorf("%v: %+v", err, w.link)
	}
}

// The chain goes on when an upload has taken the segments out of the directory, and when
// what keeps its end cannot be read it goes on from the segments that are there.
func TestTheChainOutlivesItsFiles(t *testing.T) {
	dir := t.TempDir()
	all := boot(t, dir, 2, Options{Host: "h", Boot: "b1"})
	for _, p := range segments(t, dir) {
		if err := os.Remove(p); err != nil {
			t.Fatal(err)
		}
	}
	again := boot(t, dir, 1, Options{Host: "h", Boot: "b2"})
	want := Link{Segment: "h-b1-00000002", Digest: all["h-b1-00000002"].Digest, Length: 2}
	if got := again["h-b2-00000001"].Previous; got == nil || *got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, text := range []string{"", "{", `{"length":"x"}`, "null"} {
		if err := os.WriteFile(chainPath(dir, "h"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		w, err := Create(dir, Options{Host: "h", Boot: "b3"})
		if err != nil || w.link.Segment != "h-b2-00000001" || w.link.Length != 3 {
			t.Errorf("%q: %v: %+v", text, err, w.link)
		}
	}
}

// Files of before there were chains can begin one.
func TestAChainBeginsWithAnOlderFile(t *testing.T) {
	golden := mustOpen(t, goldenSegment).Meta()
	if golden.Previous != nil {
		t.Errorf("%+v", golden.Previous)
	}
	dir := t.TempDir()
	data, err := os.ReadFile(goldenSegment)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "golden-v1-00000001.arrow"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	w, err := Create(dir, Options{Host: "golden", Boot: "v2"})
	if err != nil || w.link != (Link{Segment: "golden-v1-00000001", Digest: golden.Digest, Length: 1}) {
		t.Errorf("%v: %+v", err, w.link)
	}
}

// The link is in the file from its first byte on: a kill does not break the chain, and what
// recovery seals has its place in it.
func TestRecoveryKeepsTheChain(t *testing.T) {
	dir := t.TempDir()
	all := boot(t, dir, 2, Options{Host: "h", Boot: "b1"})
	killed, err := Create(filepath.Join(t.TempDir(), "live"), Options{Host: "h", Boot: "b2"})
	if err != nil {
		t.Fatal(err)
	}
	killed.link = all["h-b1-00000002"].Previous.Next("h-b1-00000002", all["h-b1-00000002"].Digest)
	if err := errors.Join(killed.Append(plainRow("s", "a")), killed.Flush(snapshot.Ledger{})); err != nil {
		t.Fatal(err)
	}
	img, err := os.ReadFile(killed.seg.path + OpenExt)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "h-b2-00000001"+Ext+OpenExt), img, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := RecoverDir(dir); err != nil {
		t.Fatal(err)
	}
	all = boot(t, dir, 1, Options{Host: "h", Boot: "b3"})
	follows(t, all, "h-b2-00000001", "h-b1-00000002", 2)
	follows(t, all, "h-b3-00000001", "h-b2-00000001", 3)
}

// Every seal signs how far the chain has come; a checkpoint that cannot be written is
// reported, and costs no row and no segment.
func TestSealsAreSigned(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	boot(t, dir, 2, Options{Host: "h", Boot: "b1"})
	all := boot(t, dir, 2, Options{Host: "h", Boot: "b2", CheckpointKey: private})
	note, err := os.ReadFile(filepath.Join(dir, "h-b2"+checkpoint.Ext))
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(note, public)
	want := checkpoint.Head{Segment: "h-b2-00000002", Digest: all["h-b2-00000002"].Digest, Length: 4}
	if err != nil || c.Origin != "h-b2" || len(c.Heads) != 1 || c.Heads[0] != want {
		t.Errorf("%v: %+v", err, c)
	}

	dir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "h-b"+checkpoint.Ext, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := Create(dir, Options{Host: "h", Boot: "b", CheckpointKey: private, SegmentBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.Append(plainRow("s", "a")); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(snapshot.Ledger{Offered: 1, SampledOut: 1}); err != nil && !strings.Contains(err.Error(), "checkpoint") {
			t.Fatal(err)
		}
	}
	if err := w.Close(snapshot.Ledger{}, totalOf(3)); err == nil || !strings.Contains(err.Error(), "checkpoint of h-b-0000000") {
		t.Errorf("close: %v", err)
	}
	var sum snapshot.Ledger
	for _, m := range metas(t, dir) {
		sum.Add(m.Ledger)
	}
	if sum.Written != 3 || sum.SampledOut != 3 || w.Abandoned() != 0 {
		t.Errorf("ledger %+v, %d abandoned", sum, w.Abandoned())
	}
}

func TestOptionsOfChains(t *testing.T) {
	list := strings.Repeat("3e", 32)
	all := boot(t, t.TempDir(), 1, Options{Host: "h", Boot: "b", CaptureDigest: list})
	if got := all["h-b-00000001"].CaptureList; got != list {
		t.Errorf("capture list %q", got)
	}
	for name, o := range map[string]Options{
		"capture digest": {CaptureDigest: "abc"}, "replaces": {Replaces: strings.Repeat("x", 64)}, "key": {CheckpointKey: make([]byte, 32)},
	} {
		if _, err := Create(t.TempDir(), o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Whatever stands in the place of a footer, reading the tail is an error and no panic.
func TestTailsThatAreNone(t *testing.T) {
	_, data := oneSegment(t, randomRows(newGen(91), 3), 10)
	path := filepath.Join(t.TempDir(), "x.arrow")
	try := func(img []byte) error {
		if err := os.WriteFile(path, img, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := readTail(path)
		return err
	}
	if err := try(data); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(data); n += 1 + len(data)/200 {
		if err := try(data[:n]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%d of %d bytes: %v", n, len(data), err)
		}
	}
	for i := len(data) - 300; i < len(data); i++ {
		img := append([]byte(nil), data...)
		img[i] ^= 0x41
		if err := try(img); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("byte %d of %d changed: %v", i, len(data), err)
		}
	}
}
