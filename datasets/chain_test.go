package datasets

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
	"github.com/clefbench/clefbench/snapshot/checkpoint"
)

// boot records n segments of two rows each, as a recorder of its own; the actions are those
// of production, or forged ones.
func boot(t testing.TB, dir, name string, n int, forged bool, key ed25519.PrivateKey) {
	t.Helper()
	w, err := arrowfile.Create(dir, arrowfile.Options{Host: "host", Boot: name, BatchRows: 2, SegmentBytes: 1, CheckpointKey: key})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * n {
		s := row(i, nil)
		if forged && i == 2 { // in the second segment
			s.Action = "forged"
		}
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(snapshot.Ledger{}, snapshot.Ledger{Offered: uint64(2 * n), Written: uint64(2 * n)}); err != nil {
		t.Fatal(err)
	}
}

// chained records three boots of three, one and two segments.
func chained(t testing.TB, key ed25519.PrivateKey) (dir string, segs []string) {
	t.Helper()
	dir = t.TempDir()
	boot(t, dir, "boot1", 3, false, key)
	boot(t, dir, "boot2", 1, false, key)
	boot(t, dir, "boot3", 2, false, key)
	return dir, segmentsOf(t, dir)
}

func swap(t testing.TB, a, b string) {
	t.Helper()
	for _, m := range [][2]string{{a, a + ".x"}, {b, a}, {a + ".x", b}} {
		if err := os.Rename(m[0], m[1]); err != nil {
			t.Fatal(err)
		}
	}
}

// forge puts a segment of other rows in the place of one: it follows the segment before
// it, and every digest in it holds.
func forge(t testing.TB, path, boots string, seq int) {
	t.Helper()
	dir := t.TempDir()
	boot(t, dir, boots, seq, true, nil)
	copyFile(t, segmentsOf(t, dir)[seq-1], path)
}

func faults(v *Verification) (out []string) {
	for _, f := range v.Findings {
		if !f.Note {
			out = append(out, filepath.Base(f.Path)+": "+f.Text)
		}
	}
	return out
}

func TestVerifyFollowsTheChain(t *testing.T) {
	const name1, name2, name3 = "host-boot1-0000000", "host-boot2-0000000", "host-boot3-0000000"
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, dir string, segs []string)
		want  []string // of each fault, in order
	}{
		{"intact", func(*testing.T, string, []string) {}, nil},
		{"the first are gone", func(t *testing.T, _ string, s []string) { remove(t, s[0]); remove(t, s[1]) }, nil},
		{"whole boots are gone", func(t *testing.T, _ string, s []string) {
			for _, p := range s[:4] {
				remove(t, p)
			}
		}, nil},
		{"a boot in the middle is gone", func(t *testing.T, _ string, s []string) { remove(t, s[3]) },
			[]string{name3 + "1.arrow: it was written after segment " + name2 + "1, which is missing, while the older " + name1 + "1 is here"}},
		{"the end of a boot is gone", func(t *testing.T, _ string, s []string) { remove(t, s[2]) },
			[]string{name2 + "1.arrow: it was written after segment " + name1 + "3, which is missing, while the older " + name1 + "1 is here"}},
		{"the middle of a boot is gone", func(t *testing.T, _ string, s []string) { remove(t, s[1]) },
			[]string{name1 + "3.arrow: segments 2 to 2 of this recorder are missing before it"}},
		{"replaced and sealed", func(t *testing.T, _ string, s []string) { forge(t, s[1], "boot1", 2) },
			[]string{name1 + "2.arrow: " + name1 + "3 was written after a segment of this name with the digest"}},
		{"the last is replaced", func(t *testing.T, _ string, s []string) {
			// The whole boot is made anew: without a key nobody can tell.
			remove(t, s[4])
			remove(t, s[5])
			boot(t, filepath.Dir(s[0]), "boot3", 2, true, nil)
		}, nil},
		{"reordered", func(t *testing.T, _ string, s []string) { swap(t, s[0], s[1]) },
			[]string{name1 + "2.arrow: segment 1 of this recorder stands after segment 2", name1 + "3.arrow: segments 2 to 2", name1 + "1.arrow: it was written as " + name1 + "2", name1 + "2.arrow: it was written as " + name1 + "1",
				name1 + "2.arrow: " + name1 + "3 was written after a segment of this name"}},
		{"renamed to another recorder", func(t *testing.T, dir string, s []string) {
			if err := os.Rename(s[5], filepath.Join(dir, "host-boot3-00000003.arrow")); err != nil {
				t.Fatal(err)
			}
		}, []string{name3 + "3.arrow: it was written as " + name3 + "2"}},
		{"damaged", func(t *testing.T, _ string, s []string) { flip(t, s[3]) }, []string{name2 + "1.arrow: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, segs := chained(t, nil)
			if len(segs) != 6 {
				t.Fatal(segs)
			}
			c.spoil(t, dir, segs)
			got := faults(verified(t, dir))
			if len(got) != len(c.want) {
				t.Fatalf("faults %q", got)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], c.want[i]) {
					t.Errorf("got %q, want %q", got[i], c.want[i])
				}
			}
		})
	}
}

// Opening warns of a replaced segment, and such data is not intact.
func TestOpenSeesABrokenChain(t *testing.T) {
	dir, segs := chained(t, nil)
	if info, err := opened(t, dir).Info(); err != nil || !info.Intact {
		t.Fatalf("%v: %+v", err, info)
	}
	forge(t, segs[1], "boot1", 2)
	info, err := opened(t, dir).Info()
	if err != nil || info.Intact || len(info.Warnings) != 1 || info.Warnings[0].Code != "chain" {
		t.Errorf("%v: %+v", err, info.Warnings)
	}
}

// Boot ids that begin with the time tell whether what is left is older than what is gone:
// recorders that ran side by side leave gaps that are none.
func TestGapsOfRecordersSideBySide(t *testing.T) {
	id := func(at time.Time) string { return fmt.Sprintf("%012x%08x", at.UnixMilli(), 7) }
	began := time.Unix(1700000000, 0) // of row 0
	for _, c := range []struct {
		name         string
		first, other time.Time
		fault        bool
	}{
		{"the first has ended before", began.Add(-time.Hour), began.Add(time.Hour), true},
		{"the first runs on", began.Add(-time.Hour), began.Add(-time.Minute), false},
	} {
		dir := t.TempDir()
		boot(t, dir, id(c.first), 2, false, nil)
		boot(t, dir, id(c.other), 1, false, nil)
		boot(t, dir, id(c.other.Add(time.Minute)), 1, false, nil)
		remove(t, segmentsOf(t, dir)[2])
		if got := faults(verified(t, dir)); (len(got) > 0) != c.fault {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func keyPair(t testing.TB) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return public, private
}

func signedBy(t testing.TB, dir string, by Signed) *Verification {
	t.Helper()
	v, err := VerifySigned(dir, by)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVerifySigned(t *testing.T) {
	public, private := keyPair(t)
	other, _ := keyPair(t)
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, dir string, segs []string)
		by    ed25519.PublicKey
		want  string // of the first fault, "" none
		held  int    // checkpoints that count when there is none
	}{
		{"intact", func(*testing.T, string, []string) {}, public, "", 3},
		{"another key", func(*testing.T, string, []string) {}, other, "host-boot1.checkpoint: checkpoint is not signed by this key", 0},
		{"no checkpoint", func(t *testing.T, dir string, _ []string) {
			for _, b := range []string{"boot1", "boot2", "boot3"} {
				remove(t, filepath.Join(dir, "host-"+b+checkpoint.Ext))
			}
		}, public, "there is no checkpoint", 0},
		{"the last boot made anew", func(t *testing.T, dir string, s []string) {
			remove(t, s[4])
			remove(t, s[5])
			boot(t, dir, "boot3", 2, true, nil)
		}, public, "host-boot3-00000002.arrow: the checkpoint host-boot3.checkpoint says that its digest is", 0},
		{"the last segment gone", func(t *testing.T, _ string, s []string) { remove(t, s[5]) }, public,
			"host-boot3.checkpoint: segment host-boot3-00000002, which it signs, is not here", 0},
		{"the last boot gone", func(t *testing.T, _ string, s []string) { remove(t, s[4]); remove(t, s[5]) }, public,
			"host-boot3.checkpoint: segment host-boot3-00000002, which it signs, is not here", 0},
		{"the first boot gone", func(t *testing.T, _ string, s []string) { remove(t, s[0]); remove(t, s[1]); remove(t, s[2]) }, public, "", 2},
		{"all but the last gone", func(t *testing.T, _ string, s []string) {
			for _, p := range s[:5] {
				remove(t, p)
			}
		}, public, "", 1},
		{"other segments in the place of all", func(t *testing.T, dir string, s []string) {
			for _, p := range s {
				remove(t, p)
			}
			boot(t, dir, "boot9", 3, false, nil)
		}, public, "no segment of host host that is here is covered by a signature", 0},
		{"later ones extend it", func(t *testing.T, dir string, _ []string) { boot(t, dir, "boot4", 2, false, nil) }, public, "", 3},
		{"another chain", func(t *testing.T, dir string, _ []string) {
			foreign := t.TempDir()
			boot(t, foreign, "boot9", 1, false, nil)
			copyFile(t, segmentsOf(t, foreign)[0], filepath.Join(dir, "host-boot9-00000001.arrow"))
		}, public, "host-boot9-00000001.arrow: it comes neither before nor after what a checkpoint signs", 0},
		{"a note for a checkpoint", func(t *testing.T, dir string, _ []string) { write(t, filepath.Join(dir, "x.checkpoint"), "trust me\n") }, public,
			"x.checkpoint: not a checkpoint", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, segs := chained(t, private)
			c.spoil(t, dir, segs)
			v := signedBy(t, dir, Signed{Keys: []ed25519.PublicKey{c.by}})
			got := strings.Join(faults(v), "\n")
			if c.want == "" && (got != "" || v.Checkpoints != c.held) {
				t.Errorf("faults %q, %d checkpoints", got, v.Checkpoints)
			}
			if c.want != "" && !strings.Contains(got, c.want) {
				t.Errorf("faults %q", got)
			}
		})
	}
}

// Segments after the last checkpoint are a note, until one is made of the whole directory.
func TestCheckpointOfADirectory(t *testing.T) {
	public, private := keyPair(t)
	by := Signed{Keys: []ed25519.PublicKey{public}}
	dir, segs := chained(t, private)
	boot(t, dir, "boot4", 2, false, nil)
	boot(t, filepath.Join(dir, "x"), "boot4", 1, false, nil)
	v := signedBy(t, dir, by)
	if v.Err() != nil || len(v.Findings) != 1 || !strings.Contains(v.Findings[0].Text, "2 segments came after the last checkpoint") {
		t.Errorf("%+v", v.Findings)
	}
	c, err := Checkpoint(dir, private, time.Unix(1_700_000_000, 0))
	if err != nil || len(c.Heads) != 1 || c.Heads[0].Segment != "host-boot4-00000002" || c.Heads[0].Length != 8 {
		t.Fatalf("%v: %+v", err, c)
	}
	if v := signedBy(t, dir, by); v.Err() != nil || len(v.Findings) != 0 || v.Checkpoints != 4 {
		t.Errorf("%+v", v.Findings)
	}
	// Rolled back, with all that tells of it: only a checkpoint that was kept elsewhere can.
	kept := filepath.Join(t.TempDir(), "kept")
	copyFile(t, filepath.Join(dir, checkpointName), kept)
	remove(t, filepath.Join(dir, checkpointName))
	for _, p := range segmentsOf(t, dir)[6:] {
		remove(t, p)
	}
	if v := signedBy(t, dir, by); v.Err() != nil {
		t.Errorf("%+v", v.Findings)
	}
	by.Kept = []string{kept}
	if v := signedBy(t, dir, by); v.Err() == nil || !strings.Contains(v.Err().Error(), "host-boot4-00000002, which it signs, is not here") {
		t.Errorf("%+v", v.Findings)
	}
	// What is not sound is not signed.
	flip(t, segs[0])
	if _, err := Checkpoint(dir, private, time.Now()); err == nil {
		t.Error("a damaged segment was signed")
	}
	if _, err := VerifySigned(segs[1], by); err == nil {
		t.Error("checkpoints of a single file")
	}
}
