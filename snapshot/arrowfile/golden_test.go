package arrowfile

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clefbench/clefbench/snapshot"
)

// updateEnv writes the golden files anew. A golden file of a released version is never
// changed: a new version gets new files.
const updateEnv = "ARROWFILE_UPDATE_GOLDEN"

const goldenSegment = "testdata/golden-v1.arrow"

func TestGoldenSegmentStaysReadable(t *testing.T) {
	if os.Getenv(updateEnv) != "" {
		writeGolden(t)
	}
	text, err := os.ReadFile("testdata/golden-v1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var want []object
	for line := range bytes.Lines(text) {
		var row object
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		want = append(want, row)
	}
	rows, err := readAll(mustOpen(t, goldenSegment))
	if err != nil {
		t.Fatal(err)
	}
	var got []object
	for _, s := range rows {
		got = append(got, normal(canonSnapshot(s)))
	}
	if d := cmp.Diff(want, got); d != "" || len(want) != 12 {
		t.Fatalf("%d rows (-golden +read):\n%s", len(want), d)
	}
	report, err := Verify(goldenSegment)
	if err != nil {
		t.Fatal(err)
	}
	l := report.Meta.Ledger
	if l.Offered != 15 || l.SampledOut != 2 || l.Dropped["queue-full"] != 1 || report.Meta.Total == nil {
		t.Errorf("ledger %+v", l)
	}
	if report.Meta.Digest != "723cc042ed7e5ade25bdb9f0eba53e02b7254b7b204fbb408f94c75db62809bb" {
		t.Errorf("digest %s", report.Meta.Digest)
	}
}

func writeGolden(t *testing.T) {
	t.Helper()
	rows := randomRows(newGen(71), 12)
	dir := t.TempDir()
	w, err := Create(dir, Options{Host: "golden", Boot: "v1", BatchRows: 5, Seed: labelsOf(t, rows), FeatureSets: map[string][]string{"fs-1": {"a", "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, s := range rows {
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(canonSnapshot(s))
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(line, '\n'))
	}
	lost := snapshot.Ledger{Offered: 3, SampledOut: 2, Dropped: map[string]uint64{"queue-full": 1}}
	total := snapshot.Ledger{Offered: 15, Written: 12, SampledOut: 2, Dropped: lost.Dropped}
	if err := w.Close(lost, total); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "golden-v1-00000001.arrow"))
	if err != nil {
		t.Fatal(err)
	}
	for path, b := range map[string][]byte{goldenSegment: data, "testdata/golden-v1.jsonl": text.Bytes()} {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
