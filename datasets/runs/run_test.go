package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

func runManifest() Manifest {
	zero := 0.0
	task := scoring.NewTask()
	task.Candidates, task.Unanswered, task.Baseline = []string{"allow", "block"}, &zero, 0.5
	return Manifest{
		Tool: "test", Started: time.Unix(100, 0).UTC(), Seed: 42,
		Plan: Plan{Scenarios: []string{"fraud"}, Block: 256, Warmup: 64, Timeout: 10 * time.Second, Audit: 400, Repeats: 3},
		Dataset: Dataset{
			Paths:       []string{"snapshots"},
			DatasetInfo: scoring.DatasetInfo{Snapshots: 4, Requests: 2, Digest: "d", Intact: true},
			Preset:      "fraud", Tasks: map[string]scoring.Task{"fraud": task},
			Warnings: []scoring.Warning{{Code: "gap", Text: "a segment is missing"}},
		},
		Lanes:   []Lane{{Name: "rules", Kind: "rules", Spec: "rules:x.yaml", Digest: "ab"}, {Name: "flash", Kind: "flash"}},
		Machine: ThisMachine(),
	}
}

func outcome(lane string, phase snapshot.Phase, n int) *snapshot.Outcome {
	id, request := ids(n)
	return &snapshot.Outcome{
		Ref: snapshot.Ref{Segment: "seg", Row: int64(n)}, ID: id, RequestID: request, Scenario: "fraud", KeepProb: 1,
		Backend: lane, Kind: lane, Phase: phase, Status: decision.OK, Action: "allow",
		Latency: decision.Some(time.Duration(n+1) * time.Microsecond),
	}
}

func newRun(t testing.TB, dir string, m Manifest) *Writer {
	t.Helper()
	w, err := Create(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// fill writes four rows of each lane in interleaved blocks, and labels for two.
func fill(t testing.TB, w *Writer) {
	t.Helper()
	for _, block := range []int{0, 2} {
		for _, l := range w.manifest.Lanes {
			for n := block; n < block+2; n++ {
				must(t, w.Append(outcome(l.Name, snapshot.PhaseMeasured, n)))
			}
		}
	}
	must(t, w.Append(outcome("rules", snapshot.PhaseCold, 0)))
	must(t, w.Append(outcome("flash", snapshot.PhaseCold, 0)))
	must(t, w.Append(outcome("flash", snapshot.PhaseAudit, 3)))
	for _, n := range []int{1, 3} {
		id, _ := ids(n)
		must(t, w.AppendLabel(&snapshot.Label{Ref: snapshot.Ref{Segment: "seg", Row: int64(n)}, ID: id, Action: "block"}))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sealedRun(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	w := newRun(t, dir, runManifest())
	fill(t, w)
	must(t, w.Close(false))
	return dir
}

func count[T any](t testing.TB, rows iter.Seq2[*T, error]) (n int) {
	t.Helper()
	for _, err := range rows {
		must(t, err)
		n++
	}
	return n
}

func TestRunRoundTrip(t *testing.T) {
	dir := sealedRun(t)
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := runManifest()
	got := *r.Manifest()
	if got.Version != 2 || got.Partial || got.Ended.IsZero() || len(got.Files) != 6 {
		t.Errorf("%+v", got)
	}
	want.Version, want.Ended, want.Files = 2, got.Ended, got.Files
	want.Lanes[0].File, want.Lanes[1].File = "rules.arrow", "flash.arrow"
	if d := cmp.Diff(want, got, sameNumber()); d != "" {
		t.Error(d)
	}
	for _, l := range r.Lanes() {
		n := 0
		for o, err := range r.Outcomes(l.Name) {
			must(t, err)
			if d := cmp.Diff(outcome(l.Name, snapshot.PhaseMeasured, n), o); d != "" {
				t.Error(d)
			}
			n++
		}
		if n != 4 {
			t.Errorf("%s: %d outcomes, want 4", l.Name, n)
		}
	}
	if c, a, l := count(t, r.Cold()), count(t, r.Audit()), count(t, r.Labels()); c != 2 || a != 1 || l != 2 {
		t.Errorf("%d cold, %d audit, %d labels, want 2, 1, 2", c, a, l)
	}
	if n := count(t, r.Outcomes("nobody")); n != 0 {
		t.Errorf("%d outcomes of no lane", n)
	}
	if info := r.Info(); info.Digest != r.Digest() || len(info.Digest) != 64 || info.Seed != 42 || info.Path != dir {
		t.Errorf("%+v", info)
	}
}

func TestRunRowsPair(t *testing.T) {
	r, err := Open(sealedRun(t))
	must(t, err)
	labelled, n := 0, int64(0)
	for row, err := range r.Rows() {
		must(t, err)
		for i, l := range r.Lanes() {
			if o := row.Outcomes[i]; o == nil || o.Backend != l.Name || o.Ref.Row != n {
				t.Errorf("row %d, lane %s: %+v", n, l.Name, o)
			}
		}
		if row.Label != nil {
			labelled++
		}
		n++
	}
	if n != 4 || labelled != 2 {
		t.Errorf("%d rows, %d labelled, want 4 and 2", n, labelled)
	}
}

func TestCreateRunKeepsWhatIsThere(t *testing.T) {
	dir := sealedRun(t)
	first, err := Open(dir)
	must(t, err)
	w := newRun(t, dir, runManifest())
	fill(t, w)
	if again, err := Open(dir); err != nil || again.Digest() != first.Digest() {
		t.Errorf("the older run is not readable while a new one is written: %v", err)
	}
	must(t, w.Abort())
	again, err := Open(dir)
	if err != nil || again.Digest() != first.Digest() {
		t.Errorf("the older run did not survive an aborted one: %v", err)
	}
	w = newRun(t, dir, runManifest())
	must(t, w.Append(outcome("rules", snapshot.PhaseMeasured, 0)))
	must(t, w.Close(true))
	newer, err := Open(dir)
	if err != nil || !newer.Manifest().Partial || !newer.Info().Partial || count(t, newer.Outcomes("flash")) != 0 {
		t.Errorf("the newer run: %+v, %v", newer, err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q %v", left, err)
	}
	write(t, filepath.Join(dir, "notes.txt"), "mine")
	if _, err := Create(dir, runManifest()); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "notes.txt") {
		t.Errorf("a directory with a stranger's file: %v", err)
	}
}

func TestRunWriterRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	for name, lanes := range map[string][]Lane{
		"twice":   {{Name: "a"}, {Name: "a"}},
		"no name": {{Name: ""}},
	} {
		if _, err := Create(dir, Manifest{Lanes: lanes}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	w := newRun(t, dir, runManifest())
	if err := w.Append(outcome("nobody", snapshot.PhaseMeasured, 0)); err == nil {
		t.Error("an outcome of no lane is taken")
	}
	o := outcome("rules", "dress-rehearsal", 0)
	if err := w.Append(o); err == nil {
		t.Error("an outcome of no phase is taken")
	}
	o.Phase, o.KeepProb = snapshot.PhaseMeasured, 0
	if err := w.Append(o); !errors.Is(err, snapshot.ErrInvalid) {
		t.Errorf("an invalid outcome: %v", err)
	}
	must(t, w.Abort())
	if _, err := os.Stat(dir); err == nil {
		t.Error("an aborted run is there")
	}
}

// A lane's name becomes a file name that leads nowhere else, and names that differ in
// case only stay apart.
func TestLaneFiles(t *testing.T) {
	long := strings.Repeat("x", 300)
	files, err := laneFiles([]Lane{{Name: "rules"}, {Name: "../up"}, {Name: "a/b"}, {Name: ".hidden"}, {Name: "Rules"}, {Name: "@cf/clef"}, {Name: long}, {Name: "ä"}})
	must(t, err)
	want := map[string]string{
		"rules": "rules.arrow", "../up": "%2E.%2Fup.arrow", "a/b": "a%2Fb.arrow", ".hidden": "%2Ehidden.arrow",
		"Rules": "Rules-2.arrow", "@cf/clef": "%40cf%2Fclef.arrow", "ä": "%C3%A4.arrow",
	}
	for lane, file := range want {
		if files[lane] != file {
			t.Errorf("%s: %s, want %s", lane, files[lane], file)
		}
	}
	if f := files[long]; len(f) > 110 || !plainFile(f) {
		t.Errorf("a long name gives %s", f)
	}
}

func TestOpenRunErrors(t *testing.T) {
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNotRun) {
		t.Errorf("no run: %v", err)
	}
	for _, file := range []string{"outcomes/rules.arrow", "labels.arrow", "audit/flash.arrow"} {
		dir := sealedRun(t)
		flip(t, filepath.Join(dir, file))
		if _, err := Open(dir); !errors.Is(err, arrowfile.ErrCorrupt) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s with a flipped byte: %v", file, err)
		}
		remove(t, filepath.Join(dir, file))
		if _, err := Open(dir); !errors.Is(err, arrowfile.ErrCorrupt) {
			t.Errorf("%s missing: %v", file, err)
		}
	}
	// Another, intact file in the place of one: its own digests hold, the manifest's does not.
	dir := sealedRun(t)
	copyFile(t, filepath.Join(dir, "outcomes/flash.arrow"), filepath.Join(dir, "outcomes/rules.arrow"))
	if _, err := Open(dir); !errors.Is(err, arrowfile.ErrCorrupt) {
		t.Errorf("exchanged files: %v", err)
	}
	empty := filepath.Join(t.TempDir(), "run")
	must(t, newRun(t, empty, runManifest()).Close(false))
	if _, err := Open(empty); !errors.Is(err, ErrEmpty) {
		t.Errorf("empty run: %v", err)
	}
}

func TestManifestProblems(t *testing.T) {
	for _, c := range []struct{ json, want string }{
		{``, "EOF"},
		{`{"version":1,"lane":[]}`, "unknown field"},
		{`{"version":3}`, "version 3"},
		{`{"version":1} {}`, "after the manifest"},
		{`{"version":1,"lanes":[{"name":"a","file":"../a.arrow"}]}`, "file"},
		{`{"version":1,"lanes":[{"name":"a","file":"a.arrow"},{"name":"a","file":"b.arrow"}]}`, "lane"},
		{`{"version":1,"files":[{"name":"outcomes/../x.arrow"}]}`, "file"},
		{`{"version":1,"files":[{"name":"/etc/passwd"}]}`, "file"},
		{`{"version":1,"files":[{"name":"labels.arrow","rows":-1}]}`, "-1 rows"},
	} {
		if _, err := ParseManifest("m.json", []byte(c.json)); !errors.Is(err, arrowfile.ErrCorrupt) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.json, err, c.want)
		}
	}
}

// The committed manifest is what version 1 looks like; later versions must still read it.
func TestManifestGolden(t *testing.T) {
	data, err := os.ReadFile("testdata/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	m, err := ParseManifest("manifest.json", data)
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bytes.TrimSpace(data), again) {
		t.Errorf("got\n%s\nwant\n%s", again, data)
	}
}

func FuzzManifest(f *testing.F) {
	data, err := os.ReadFile("testdata/manifest.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"version":1,"files":[{"name":"labels.arrow","rows":1,"sha256":"00"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseManifest("m.json", data)
		if err != nil {
			return
		}
		for _, file := range m.Files {
			if p := filepath.Join("run", filepath.FromSlash(file.Name)); !strings.HasPrefix(p, "run"+string(os.PathSeparator)) {
				t.Fatalf("%q leaves the run", file.Name)
			}
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseManifest("m.json", again); err != nil {
			t.Fatalf("%v\n%s", err, again)
		}
	})
}
