package datasets

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

func TestRetainRefuses(t *testing.T) {
	dir, root := traffic(t, 60), t.TempDir()
	try := func(out string, change func(o *RetainOptions), want error, text string) {
		t.Helper()
		o := policy()
		change(&o)
		if _, err := Retain(dir, out, o); !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %v with %q", err, want, text)
		}
		if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
	out := filepath.Join(root, "out")
	nan := math.NaN()
	try(out, func(o *RetainOptions) { o.Policy.Keep = 0 }, ErrPolicy, "no weight brings back a stratum")
	try(out, func(o *RetainOptions) { o.Policy.Keep = 1.1 }, ErrPolicy, "not in (0,1]")
	try(out, func(o *RetainOptions) { o.Policy.Keep = nan }, ErrPolicy, "not in (0,1]")
	try(out, func(o *RetainOptions) { o.Policy.Keep = 1e-9 }, ErrPolicy, "2^-24")
	try(out, func(o *RetainOptions) { o.Policy.After = -1 }, ErrPolicy, "negative")
	try(out, func(o *RetainOptions) { o.Policy.LowConfidence = nan }, ErrPolicy, "low confidence")
	try(out, func(o *RetainOptions) { o.Policy.Rare = 1 }, ErrPolicy, "rare")
	try(out, func(o *RetainOptions) { o.Policy.Rules = []string{""} }, ErrPolicy, "without a name")
	try(dir, func(*RetainOptions) {}, fs.ErrExist, dir)
	try(filepath.Join(dir, "new"), func(*RetainOptions) {}, ErrPolicy, "inside the data set")
	try(filepath.Join(root, "no", "where"), func(*RetainOptions) {}, fs.ErrNotExist, "no")
	open := filepath.Join(dir, "host-boot-00000009.arrow.open")
	if err := os.WriteFile(open, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	try(out, func(*RetainOptions) {}, arrowfile.ErrUnsealed, "neither kept nor counted")
	if err := os.Remove(open); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, RetentionName), []byte(`{"version":3,"retentions":[]}`), 0o666); err != nil {
		t.Fatal(err)
	}
	try(out, func(*RetainOptions) {}, arrowfile.ErrCorrupt, "version 3")
}

// old records rows that are old enough to go.
func old(t testing.TB, n int, change func(i int, s *snapshot.Snapshot)) string {
	t.Helper()
	dir := t.TempDir()
	w, err := arrowfile.Create(dir, arrowfile.Options{Host: "host", Boot: "boot"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		s := row(i, nil)
		change(i, s)
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(snapshot.Ledger{}, snapshot.Ledger{Offered: uint64(n), Written: uint64(n)}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A weight that scoring would refuse is refused before anything appears.
func TestRetainBoundsWeights(t *testing.T) {
	dir := old(t, 200, func(_ int, s *snapshot.Snapshot) { s.KeepProb = minKeepProb * 2 })
	o, root := policy(), t.TempDir()
	o.Policy.Keep = 0.5
	retain(t, dir, filepath.Join(root, "half"), o)
	o.Policy.Keep = 0.4
	if _, err := Retain(dir, filepath.Join(root, "less"), o); !errors.Is(err, ErrPolicy) || !strings.Contains(err.Error(), "below 2^-24") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// Where chance or age leaves nothing, there is no data set.
func TestRetainNothing(t *testing.T) {
	o := policy()
	o.Policy.Keep = minKeepProb
	root := t.TempDir()
	if _, err := Retain(old(t, 4, func(int, *snapshot.Snapshot) {}), filepath.Join(root, "out"), o); !errors.Is(err, ErrEmpty) {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// A request whose rows stand in two segments is one request: its second row keeps the first.
func TestRetainAcrossSegments(t *testing.T) {
	a, b := schema(t, decision.Field{Name: "a", Type: decision.Int}), schema(t, decision.Field{Name: "b", Type: decision.Int})
	dir := old(t, 20, func(i int, s *snapshot.Snapshot) {
		s.Attrs = decision.Attrs{Schema: a, Values: []decision.Value{decision.IntValue(int64(i))}}
		if i >= 11 { // rows 10 and 11 are one request
			s.Attrs.Schema = b
		}
		if i == 11 {
			s.RuleID = "keep"
		}
	})
	o, out := policy(), filepath.Join(t.TempDir(), "out")
	o.Policy.Keep, o.Policy.Rules = minKeepProb, []string{"keep"}
	retain(t, dir, out, o)
	var got []string
	d := opened(t, out)
	for s, err := range d.Snapshots(Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %v %v %v", s.SourceID, s.KeepProb, s.Attrs.Get("a"), s.Attrs.Get("b")))
	}
	if want := []string{"row/10 1 10 null", "row/11 1 null 11"}; !reflect.DeepEqual(got, want) || len(d.segments) != 2 {
		t.Errorf("%q in %d segments, want %q", got, len(d.segments), want)
	}
}

// Rows of a request that do not stand together are one request all the same: what one of
// them says holds for all, under one keep_prob.
func TestRetainOfInterleavedRequests(t *testing.T) {
	dir := old(t, 40, func(i int, s *snapshot.Snapshot) {
		s.RequestID = row(2*(i%4), s.Attrs.Schema).RequestID // four requests take turns
		if i == 21 {
			s.RuleID = "keep"
		}
		if i == 38 {
			s.Time = retainNow()
		}
	})
	o, out := policy(), filepath.Join(t.TempDir(), "out")
	o.Policy.Keep, o.Policy.Rules = minKeepProb, []string{"keep"}
	done := retain(t, dir, out, o)
	n := map[decision.ID]int{}
	for s, err := range opened(t, out).Snapshots(Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		n[s.RequestID]++
		if s.KeepProb != 1 {
			t.Errorf("%s has keep_prob %v", s.SourceID, s.KeepProb)
		}
	}
	// 1 has the row that the rule decided, 2 the young one.
	if len(n) != 2 || n[row(2, nil).RequestID] != 10 || n[row(4, nil).RequestID] != 10 {
		t.Errorf("rows by request: %v", n)
	}
	if again, err := opened(t, dir).splitRequests(); err != nil || len(again) != 4 {
		t.Errorf("%v: %d split requests", err, len(again))
	}
	if again, err := opened(t, two(t)).splitRequests(); err != nil || len(again) != 0 {
		t.Errorf("%v: %d split requests where there are none", err, len(again))
	}
	if len(done.Strata) == 0 {
		t.Error("nothing counted")
	}
}
