package datasets

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// fillRow sets every field below v to something.
func fillRow(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(3)
	case reflect.Int8, reflect.Int16, reflect.Int64:
		v.SetInt(7)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Array:
		for i := range v.Len() {
			fillRow(v.Index(i), name)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillRow(v.Index(0), name)
	case reflect.Struct:
		for i := range v.NumField() {
			fillRow(v.Field(i), v.Type().Field(i).Name)
		}
	}
}

// fullRow has a value in every column.
func fullRow(t testing.TB) (*snapshot.Snapshot, *snapshot.Label) {
	t.Helper()
	var s snapshot.Snapshot
	for i, v := 0, reflect.ValueOf(&s).Elem(); i < v.NumField(); i++ {
		if name := v.Type().Field(i).Name; name != "Attrs" && name != "Time" && name != "Ref" {
			fillRow(v.Field(i), name)
		}
	}
	s.Status, s.Time, s.Params, s.ND = decision.OK, time.Unix(1700000000, 5).UTC(), `{"ttl": 60}`, `{"seed":1}`
	s.Input, s.Output = []byte(`{"q":"a<b"}`), []byte{0xff, 0}
	s.Attrs.Schema = schema(t, decision.Field{Name: "path", Type: decision.String}, decision.Field{Name: "n", Type: decision.Int},
		decision.Field{Name: "rate", Type: decision.Double}, decision.Field{Name: "on", Type: decision.Bool})
	s.Attrs.Values = []decision.Value{decision.StringValue("=1+1"), decision.IntValue(math.MaxInt64), decision.DoubleValue(3), decision.BoolValue(false)}
	l := &snapshot.Label{ID: s.ID, Action: "Action", Utilities: []snapshot.ActionUtility{{Action: "Action", Utility: 1}},
		Reward: decision.Some(0.25), Source: "Source", Time: time.Unix(9, 0).UTC(), Key: "Key"}
	return &s, l
}

// lines returns a row as both formats write it.
func lines(s *snapshot.Snapshot, l *snapshot.Label) (jsonLine, csvLine string) {
	e := &exporter{columns: exportColumns(s.Attrs.Schema)}
	e.object(&pair{s, l})
	jsonLine = string(e.line)
	e.line = nil
	e.record(&pair{s, l})
	return jsonLine, string(e.line)
}

// Whatever a row or a label holds is in the export: when a field loses its value, both
// lines change.
func TestExportHasEveryField(t *testing.T) {
	s, l := fullRow(t)
	wantJSON, wantCSV := lines(s, l)
	fields := 0
	var clearEach func(v reflect.Value, path string)
	clearEach = func(v reflect.Value, path string) {
		if path == "Snapshot.Ref" || path == "Snapshot.Attrs" || path == "Label.Ref" || path == "Label.ID" {
			return
		}
		if v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]() {
			if _, opt := v.Type().FieldByName("Set"); !opt {
				for i := range v.NumField() {
					clearEach(v.Field(i), path+"."+v.Type().Field(i).Name)
				}
				return
			}
		}
		fields++
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		v.SetZero()
		if j, c := lines(s, l); j == wantJSON || c == wantCSV {
			t.Errorf("%s is not exported", path)
		}
		v.Set(old)
	}
	clearEach(reflect.ValueOf(s).Elem(), "Snapshot")
	clearEach(reflect.ValueOf(l).Elem(), "Label")
	if fields < 60 {
		t.Errorf("only %d fields were looked at", fields)
	}
}

// The golden files hold the formats still: names, order, numbers, quoting.
func TestExportGolden(t *testing.T) {
	s, l := fullRow(t)
	j, c := lines(s, l)
	e := &exporter{columns: exportColumns(s.Attrs.Schema)}
	e.header()
	for name, got := range map[string]string{"export.jsonl": j, "export.csv": string(e.line) + c} {
		path := filepath.Join("testdata", name)
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestExportNullsAreLeftOut(t *testing.T) {
	s := row(0, schema(t, decision.Field{Name: "a", Type: decision.String}, decision.Field{Name: "b", Type: decision.String}))
	s.Attrs.Values = []decision.Value{{}, decision.StringValue("")}
	j, c := lines(s, nil)
	var got map[string]any
	if err := json.Unmarshal([]byte(j), &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got["attrs"], map[string]any{"b": ""}) {
		t.Errorf("attrs %v: null is left out, empty text is not", got["attrs"])
	}
	for _, name := range []string{"label", "stages", "candidates", "confidence", "input", "params", "terms"} {
		if v, ok := got[name]; ok {
			t.Errorf("%s is %v", name, v)
		}
	}
	if want := `abuse,,,"",`; !strings.Contains(c, want) {
		t.Errorf("CSV %s: want %s, null empty and empty text quoted", c, want)
	}
}

func TestExportBodies(t *testing.T) {
	s := row(0, nil)
	s.Input, s.Output = []byte("{\"a\":\n1}"), []byte("\xff\x00raw")
	s.Params, s.ND = "{\n}", "null"
	j, _ := lines(s, nil)
	var got struct {
		Input  string
		Output *string
		Out64  string          `json:"output_base64"`
		Params json.RawMessage `json:"params"`
		Text   string          `json:"params_text"`
		ND     string          `json:"nd_text"`
	}
	if err := json.Unmarshal([]byte(j), &got); err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(got.Out64)
	if err != nil || string(raw) != string(s.Output) || got.Output != nil {
		t.Errorf("output %q, %v", raw, err)
	}
	if got.Input != string(s.Input) || got.Params != nil || got.Text != s.Params || got.ND != "null" || strings.Count(j, "\n") != 1 {
		t.Errorf("got %+v of %s", got, j)
	}
}

// Numbers read back to the same bits, and doubles do not look like integers.
func TestExportNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	values := []float64{0, math.Copysign(0, -1), 1, 1e21, 1e-7, math.MaxFloat64, math.SmallestNonzeroFloat64, 1<<53 + 2, 0.1}
	for range 20000 {
		values = append(values, math.Float64frombits(r.Uint64()))
	}
	for _, v := range values {
		for _, bits := range []int{32, 64} {
			x := v
			if bits == 32 {
				x = float64(float32(v))
			}
			b, kind := appendFloat(nil, x, bits)
			back, err := strconv.ParseFloat(strings.Replace(string(b), "Infinity", "Inf", 1), bits)
			if err != nil || math.Float64bits(back) != math.Float64bits(x) && !math.IsNaN(x) {
				t.Fatalf("%v at %d bits is %s, which reads as %v (%v)", x, bits, b, back, err)
			}
			if finite := !math.IsNaN(x) && !math.IsInf(x, 0); finite != (kind == cellJSON) || finite && (!json.Valid(b) || !bytes.ContainsAny(b, ".e")) {
				t.Fatalf("%v at %d bits is %s", x, bits, b)
			}
		}
	}
}

func exported(t testing.TB, d *Dataset, to ExportFormat, f Filter) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := d.Export(&b, to, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestExportDataset(t *testing.T) {
	dir := two(t)
	label(t, dir)
	d := opened(t, dir)
	in := bufio.NewScanner(strings.NewReader(exported(t, d, ExportJSONL, Filter{})))
	for s, err := range d.Snapshots(Filter{}) {
		if err != nil || !in.Scan() {
			t.Fatalf("%v: too few lines", err)
		}
		var got struct {
			ID    decision.ID
			Attrs map[string]any
			Label *struct{ Action, Source string }
		}
		if err := json.Unmarshal(in.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		l := truthOf(s)
		if got.ID != s.ID || got.Attrs["path"] != s.Attrs.Get("path").Str() || (got.Label == nil) != (l == nil) || l != nil && got.Label.Action != l.Action {
			t.Errorf("row %v is %s", s.Ref, in.Text())
		}
	}
	if in.Scan() {
		t.Error("too many lines")
	}
	cells, err := csv.NewReader(strings.NewReader(exported(t, d, ExportCSV, Filter{Scenarios: []string{"fraud"}}))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(cells) != 11 || cells[1][7] != "fraud" || !strings.Contains(strings.Join(cells[0], " "), "attrs.path attrs.local.n attrs.metrics.x input ") {
		t.Errorf("%d lines, header %q", len(cells), cells[0])
	}
	for _, row := range cells[1:] {
		if row[7] != "fraud" {
			t.Errorf("scenario %s was not asked for", row[7])
		}
	}
}

func TestExportRefuses(t *testing.T) {
	dir := two(t)
	d := opened(t, dir)
	var b bytes.Buffer
	if _, err := d.Export(&b, "xml", Filter{}); !errors.Is(err, ErrExportFormat) {
		t.Errorf("unknown format: %v", err)
	}
	if _, err := d.Export(&b, ExportCSV, Filter{Scenarios: []string{"none"}}); !errors.Is(err, ErrEmpty) || b.Len() > 0 {
		t.Errorf("nothing selected: %v, %q written", err, b.String())
	}
	full := errors.New("disk full")
	if _, err := d.Export(failingWriter{full}, ExportJSONL, Filter{}); !errors.Is(err, full) {
		t.Errorf("a writer that fails: %v", err)
	}
	path := segmentsOf(t, dir)[1]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Export(&b, ExportJSONL, Filter{}); !errors.Is(err, arrowfile.ErrCorrupt) || strings.Count(b.String(), "\n") != 12 {
		t.Errorf("damaged after opening: %v, %d lines", err, strings.Count(b.String(), "\n"))
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// Any text comes back from both formats.
func FuzzExportText(f *testing.F) {
	for _, s := range []string{"", "a", " a ", "a,b\"c", "line\r\nbreak", "=1+1", "\x00\x1f\x7f\u2028", "\\u0041", "\ufeff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			text = string(appendText(nil, text))
		}
		var back string
		quoted := appendJSONText(nil, []byte(text))
		if err := json.Unmarshal(quoted, &back); err != nil || back != text || bytes.ContainsAny(quoted, "\r\n") {
			t.Errorf("%q is %s, which reads as %q (%v)", text, quoted, back, err)
		}
		cell := appendCSV(nil, []byte(text))
		in := csv.NewReader(bytes.NewReader(append(append([]byte("x,"), cell...), ",y\r\n"...)))
		got, err := in.Read()
		// This reader turns \r\n inside a cell into \n.
		if want := []string{"x", strings.ReplaceAll(text, "\r\n", "\n"), "y"}; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %s, which reads as %q (%v)", text, cell, got, err)
		}
	})
}

func BenchmarkExport(b *testing.B) {
	d := opened(b, two(b))
	for _, to := range []ExportFormat{ExportJSONL, ExportCSV} {
		b.Run(string(to), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Export(new(bytes.Buffer), to, Filter{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func ExampleDataset_Export() {
	dir, err := exampleData()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	d, err := Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	if _, err := d.Export(os.Stdout, ExportJSONL, Filter{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"id":"0b000000-0000-0000-0000-000000000000","request_id":"0c000000-0000-0000-0000-000000000000","status":"ok","ts":"2026-03-01T12:00:00Z","scenario":"edge","attrs":{"path":"/"},"action":"allow","keep_prob":0.5}
}

// exampleData records one decision.
func exampleData() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "example"); err != nil {
		return "", err
	}
	w, err := arrowfile.Create(dir, arrowfile.Options{})
	if err != nil {
		return dir, err
	}
	s, err := decision.NewSchema(decision.Field{Name: "path", Type: decision.String})
	if err != nil {
		return dir, err
	}
	err = w.Append(&snapshot.Snapshot{ID: decision.ID{11}, RequestID: decision.ID{12}, Scenario: "edge", Status: decision.OK, Action: "allow",
		Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), KeepProb: 0.5,
		Attrs: decision.Attrs{Schema: s, Values: []decision.Value{decision.StringValue("/")}}})
	return dir, errors.Join(err, w.Close(snapshot.Ledger{}, snapshot.Ledger{Offered: 1, Written: 1}))
}
