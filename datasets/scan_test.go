package datasets

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// A secret in any text of a row is found, so that a column that is added to the row and
// forgotten in the scan fails here.
func TestScanLooksEverywhere(t *testing.T) {
	const planted = "sk-ant-api03-aB3dE5gHaB3dE5gH"
	sc := schema(t, decision.Field{Name: "note", Type: decision.String}, decision.Field{Name: "n", Type: decision.Int})
	var texts []func(*snapshot.Snapshot)
	plain := row(1, sc)
	texts = append(texts, func(s *snapshot.Snapshot) {
		s.Attrs.Values = []decision.Value{decision.StringValue(planted), decision.IntValue(1)}
	},
		func(s *snapshot.Snapshot) { s.Input = []byte(`{"a":"` + planted + `"}`) }, func(s *snapshot.Snapshot) { s.Output = []byte("{broken " + planted) },
		func(s *snapshot.Snapshot) { s.Output = []byte("\xff " + planted) },
		func(s *snapshot.Snapshot) { s.Candidates = []decision.Candidate{{Action: planted}} }, func(s *snapshot.Snapshot) { s.Redacted = []string{planted} },
		func(s *snapshot.Snapshot) { s.Terms.TrainingUse = planted }, func(s *snapshot.Snapshot) { s.Terms.Publishable = planted })
	for _, at := range stringFields(reflect.TypeFor[snapshot.Snapshot](), nil) {
		texts = append(texts, func(s *snapshot.Snapshot) {
			f := reflect.ValueOf(s).Elem().FieldByIndex(at)
			f.SetString(planted)
		})
	}
	if len(texts) < 24 {
		t.Fatalf("%d texts", len(texts))
	}
	for i, plant := range texts {
		s := row(1, sc)
		s.Attrs.Values = []decision.Value{decision.StringValue("x"), decision.IntValue(1)}
		plant(s)
		if s.Action != "" && s.Action != plain.Action {
			s.Status = decision.OK
		}
		dir := t.TempDir()
		writeSegment(t, dir, arrowfile.Options{Host: "h", Boot: "b"}, s)
		report, err := opened(t, dir).Scan()
		if err != nil || report.Places != 1 || report.Findings[0].Kind != "api-key" || report.Findings[0].Examples[0].ID != s.ID {
			t.Errorf("text %d: %+v %v in %+v", i, report, err, s)
			continue
		}
		if text, _ := json.Marshal(report); strings.Contains(string(text), planted) {
			t.Errorf("text %d: the report holds the secret", i)
		}
		if report, err = opened(t, dir).Scan("api-key"); err != nil || report.Places != 0 {
			t.Errorf("text %d: ignored and found: %+v %v", i, report, err)
		}
	}
}

// stringFields are the places of the strings of a struct that a writer keeps.
func stringFields(t reflect.Type, at []int) (out [][]int) {
	for i := range t.NumField() {
		f, here := t.Field(i), append(slices.Clone(at), i)
		switch {
		case f.Name == "Ref", f.Name == "Terms", f.Name == "Attrs":
		case f.Name == "QuestionType", f.Name == "PropensityKind": // closed sets of few
		case f.Type.Kind() == reflect.String:
			out = append(out, here)
		case f.Name == "Artefact":
			out = append(out, stringFields(f.Type, here)...)
		}
	}
	return out
}

func writeSegment(t testing.TB, dir string, opts arrowfile.Options, rows ...*snapshot.Snapshot) {
	t.Helper()
	w, err := arrowfile.Create(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range rows {
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	led := snapshot.Ledger{Offered: uint64(len(rows)), Written: uint64(len(rows))}
	if err := w.Close(snapshot.Ledger{}, led); err != nil {
		t.Fatal(err)
	}
}

func TestScanCounts(t *testing.T) {
	sc := schema(t, decision.Field{Name: "headers.cookie", Type: decision.String}, decision.Field{Name: "mail", Type: decision.String})
	var rows []*snapshot.Snapshot
	for n := range 10 {
		s := row(n, sc)
		s.Attrs.Values = []decision.Value{decision.StringValue("x"), decision.StringValue("a@b.co")}
		s.Input = []byte(`{"m":["a@b.co","c@d.co",{"password":"x"}]}`)
		rows = append(rows, s)
	}
	dir := t.TempDir()
	writeSegment(t, dir, arrowfile.Options{}, rows...)
	report, err := opened(t, dir).Scan()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range report.Findings {
		got = append(got, fmt.Sprint(f.Column, " ", f.Kind, " ", f.Places, " ", len(f.Examples), " ", f.Examples[0].Pointer))
	}
	want := "[attrs.headers.cookie credential 10 3  attrs.mail email 10 3  input credential 10 3 /m/2/password input email 20 3 /m/0]"
	if fmt.Sprint(got) != want || report.Places != 50 || report.Snapshots != 10 {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}

// A password is looked for in its own request: as a word of other rows it is no secret.
func TestScanForgetsBetweenRequests(t *testing.T) {
	sc := schema(t, decision.Field{Name: "path", Type: decision.String})
	var rows []*snapshot.Snapshot
	for n := range 20 {
		s := row(n, sc)
		s.RequestID = s.ID
		s.Input, s.Params = []byte(`{"page":"checkout"}`), `{"next":"checkout"}`
		if n == 0 {
			s.Input = []byte(`{"password":"checkout"}`)
		}
		rows = append(rows, s)
	}
	dir := t.TempDir()
	writeSegment(t, dir, arrowfile.Options{}, rows...)
	report, err := opened(t, dir).Scan()
	if err != nil || report.Places != 2 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestMergedSegmentsSayEverySampling(t *testing.T) {
	of := func(samplings ...string) []segment {
		var out []segment
		for _, s := range samplings {
			out = append(out, segment{meta: arrowfile.Meta{Sampling: s}})
		}
		return out
	}
	for want, segments := range map[string][]segment{
		"":                     of("", ""),
		"rate=0.1":             of("rate=0.1", "rate=0.1"),
		"all or rate=0.1":      of("rate=0.1", ""),
		"rate=0.1 or rate=0.2": of("rate=0.2", "rate=0.1 or rate=0.2"),
	} {
		if got := samplingOf(segments); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSegmentsSayUnderWhichKey(t *testing.T) {
	dir := t.TempDir()
	sc := schema(t, decision.Field{Name: "path", Type: decision.String})
	write := func(boot, key string, entity bool) {
		s := row(len(boot), sc)
		s.Entity.Set = entity
		writeSegment(t, dir, arrowfile.Options{Host: "h", Boot: boot, EntityKeyID: key, Redaction: "secrets", CaptureDigest: strings.Repeat("c0", 32)}, s)
	}
	notes := func() (n int) {
		v, err := Verify(dir)
		if err != nil || v.Err() != nil {
			t.Fatal(err, v.Err())
		}
		for _, f := range v.Findings {
			if strings.Contains(f.Text, "k1 and k2") {
				n++
			}
		}
		for _, w := range opened(t, dir).Warnings() {
			if w.Code == "entity-keys" {
				n += 10
			}
		}
		return n
	}
	write("a", "k1", true)
	write("bb", "k1", true)
	write("ccc", "", true)
	write("cccc", "k0", false) // no entity, no matter
	if n := notes(); n != 0 {
		t.Errorf("one key: %d", n)
	}
	write("ddddd", "k2", true)
	if n := notes(); n != 11 {
		t.Errorf("two keys: %d", n)
	}
	info, err := Describe(dir)
	if err != nil || fmt.Sprint(info.EntityKeys, info.Redaction) != "[k1 k2] [secrets]" {
		t.Errorf("%v %v %v", info.EntityKeys, info.Redaction, err)
	}
	o := originOptions(opened(t, dir).segments, arrowfile.Options{Host: "x"})
	if o.EntityKeyID != "k1,k2" || o.Redaction != "secrets" || o.CaptureDigest != strings.Repeat("c0", 32) || o.Host != "x" {
		t.Errorf("%+v", o)
	}
	merged := filepath.Join(t.TempDir(), "m")
	both := row(1, sc)
	both.Entity.Set = true
	writeSegment(t, merged, o, both)
	if info, err = Describe(merged); err != nil || fmt.Sprint(info.EntityKeys) != "[k1 k2]" {
		t.Errorf("merged: %v %v", info.EntityKeys, err)
	}
}

func BenchmarkScan(b *testing.B) {
	dir := b.TempDir()
	sc := schema(b, decision.Field{Name: "path", Type: decision.String})
	var rows []*snapshot.Snapshot
	bytes := 0
	for n := range 5000 {
		s := row(n, sc)
		s.Input = fmt.Appendf(nil, `{"scenario":"edge","n":%d,"attributes":{"method":"GET","path":"/api/v1/items/%d","user-agent":"Mozilla/5.0 (X11; Linux x86_64)"},"candidates":["allow","deny"]}`, n, n)
		bytes += len(s.Input)
		rows = append(rows, s)
	}
	writeSegment(b, dir, arrowfile.Options{}, rows...)
	d := opened(b, dir)
	b.SetBytes(int64(bytes))
	for b.Loop() {
		if r, err := d.Scan(); err != nil || r.Places != 0 {
			b.Fatal(r, err)
		}
	}
}
