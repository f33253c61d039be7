package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/stats"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

func selftest(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, lookupEnv: func(string) (string, bool) { return "", false }}
	code = run(context.Background(), append([]string{"record", "selftest"}, args...), a)
	return code, out.String(), errs.String()
}

// A busy machine may miss the schedule; then the result says so and the exit code too.
func TestSelftest(t *testing.T) {
	dir := t.TempDir()
	code, out, errs := selftest(t, "--rate", "400", "--duration", "1s", "--callers", "2", "--dir", dir, "-f", "json")
	var r selftestResult
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("exit %d: %v\n%s%s", code, err, out, errs)
	}
	if want := map[bool]int{true: exitOK, false: exitInvalid}[r.Invalid == ""]; code != want {
		t.Errorf("exit %d, but invalid is %q", code, r.Invalid)
	}
	if r.Offered != 200 || r.DropRate != 0 || len(r.Dropped) != 0 {
		t.Errorf("%d of 200 offered, dropped %v", r.Offered, r.Dropped)
	}
	if r.HandOver.P50 == nil || *r.HandOver.P50 <= 0 || r.HandOver.P99 != nil || r.Added.P50 == nil || r.Added.P999 != nil || r.BurstNs <= 0 || r.BytesPerRow <= 0 {
		t.Errorf("got %s", out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 || r.Directory != dir {
		t.Errorf("%v: %d files are left in %s", err, len(left), r.Directory)
	}
	code, out, _ = selftest(t, "--rate", "100", "--duration", "1s", "--policy", "block")
	if code != exitOK && code != exitInvalid || !strings.Contains(out, "policy block") || !strings.Contains(out, "added") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestSelftestUsage(t *testing.T) {
	for _, args := range []string{"", "--rate 0", "--rate NaN", "--rate 1e9", "--rate 10 --duration 1ms", "--rate 10 --policy wait",
		"--rate 10 --callers 0", "--rate 10 -f xml", "--rate 10 extra"} {
		if code, _, errs := selftest(t, strings.Fields(args)...); code != exitUsage {
			t.Errorf("%q: exit %d %s", args, code, errs)
		}
	}
}

// A caller that starts late has all its calls late: the time before a call counts, which a
// clock that starts with the call would leave out.
func TestSelftestCountsFromTheSchedule(t *testing.T) {
	w, err := arrowfile.Create(t.TempDir(), arrowfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := recorder.New(w, recorder.Options{Capture: selftestCapture()})
	if err != nil {
		t.Fatal(err)
	}
	m := &selftestRun{flags: &selftestFlags{rate: 1000, callers: 1}, rec: rec, rows: selftestRows()}
	var l selftestLoad
	m.call(context.Background(), &l, 0, time.Now().Add(-100*time.Millisecond), 100*time.Millisecond, true)
	if got := time.Duration(l.response.Quantile(0.5)); l.calls != 100 || got < 49*time.Millisecond {
		t.Errorf("%d calls, the middle one %v late; it was due 50ms before the first began", l.calls, got)
	}
	if l.call.Total() != 100 || l.spent <= 0 {
		t.Errorf("%d hand-overs took %v", l.call.Total(), l.spent)
	}
	if err := m.close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := rec.Stats().Ledger.Written; n != 100 {
		t.Errorf("%d rows", n)
	}
}

// All callers together keep the rate, and no two share a row.
func TestSelftestSchedule(t *testing.T) {
	m := &selftestRun{flags: &selftestFlags{rate: 3000, callers: 7}, rows: selftestRows()}
	calls, seen := uint64(0), map[*decision.ID]bool{}
	for caller := range 7 {
		var l selftestLoad
		m.call(context.Background(), &l, caller, time.Now().Add(-time.Second), time.Second, false)
		calls += l.calls
		for _, s := range m.share(caller) {
			if seen[&s.ID] {
				t.Fatal("two callers share a row")
			}
			seen[&s.ID] = true
		}
	}
	if calls < 2999 || calls > 3001 {
		t.Errorf("%d calls of 3000", calls)
	}
	for _, d := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second, time.Minute} {
		n, length := (&selftestFlags{duration: d}).blocks()
		if n%4 != 0 || length < minSelftestBlock || length*time.Duration(n) > d {
			t.Errorf("%v: %d blocks of %v", d, n, length)
		}
	}
}

func TestSelftestSaysWhatItDoesNotKnow(t *testing.T) {
	var h stats.Histogram
	h.Add(1000, 999)
	if q := quantilesOf(&h); q.P50 == nil || q.P99 != nil || q.P999 != nil {
		t.Errorf("got %+v: 999 calls have no ten above their p99", q)
	}
	h.Add(1000, 9001)
	if q := quantilesOf(&h); q.P999 == nil {
		t.Error("10000 calls have ten above their p99.9")
	}
	for _, c := range []struct {
		ns   float64
		sign bool
		want string
	}{{0, true, "+0 ns"}, {-12.4, true, "-12 ns"}, {999, false, "999 ns"}, {1234, false, "1.23 µs"}, {56_789, true, "+56.8 µs"}, {3.21e9, false, "3.21 s"}, {-4.5e6, true, "-4.50 ms"}} {
		if got := shortTime(&c.ns, c.sign); got != c.want {
			t.Errorf("%v prints as %q, want %q", c.ns, got, c.want)
		}
	}
	if shortTime(nil, true) != "-" || fmt.Sprint(quantiles{}.minus(quantiles{}).P50) != "<nil>" {
		t.Error("what is not known is printed")
	}
}
