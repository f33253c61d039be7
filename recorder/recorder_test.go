package recorder

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// memory is a sink that keeps clones, and can be told to misbehave.
type memory struct {
	mu      sync.Mutex
	rows    []*snapshot.Snapshot
	flushes int
	lost    snapshot.Ledger
	total   snapshot.Ledger
	closes  int

	onAppend func(s *snapshot.Snapshot) error
	onFlush  func() error
	onClose  func() error
}

func (m *memory) Append(s *snapshot.Snapshot) error {
	if m.onAppend != nil {
		if err := m.onAppend(s); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows = append(m.rows, s.Clone())
	return nil
}

func (m *memory) Flush(lost snapshot.Ledger) error {
	m.mu.Lock()
	m.lost.Add(lost)
	m.mu.Unlock()
	if m.onFlush != nil {
		if err := m.onFlush(); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flushes++
	return lost.Check()
}

func (m *memory) Close(lost, total snapshot.Ledger) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closes++
	m.lost.Add(lost)
	m.total = total
	if m.onClose != nil {
		return m.onClose()
	}
	return nil
}

func (m *memory) all() []*snapshot.Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]*snapshot.Snapshot(nil), m.rows...)
}

func (m *memory) flushCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.flushes
}

var key = []byte("0123456789abcdef0123456789abcdef")

func newRecorder(t *testing.T, sink Sink, opts Options) *Recorder {
	t.Helper()
	r, err := New(sink, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(context.Background()) })
	return r
}

func closeNow(t *testing.T, r *Recorder) snapshot.Ledger {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return r.Stats().Ledger
}

// row is a valid row; n tells rows apart.
func row(n int) *snapshot.Snapshot {
	now := time.Unix(1_700_000_000, int64(n)).UTC()
	return &snapshot.Snapshot{ID: decision.NewID(now), RequestID: decision.NewID(now), Status: decision.OK,
		Action: "allow", Time: now, Scenario: "test", KeepProb: 1, SourceID: fmt.Sprint(n)}
}

func TestRecordKeepsWhatItIsGiven(t *testing.T) {
	schema, err := decision.NewSchema(decision.Field{Name: "secretive", Type: decision.String}, decision.Field{Name: "n", Type: decision.Int})
	if err != nil {
		t.Fatal(err)
	}
	sink := &memory{}
	r := newRecorder(t, sink, Options{Capture: Capture{Fields: []CaptureField{{Name: "n", Type: decision.Int}}, Input: true}})
	a, b := row(1), row(2)
	b.RequestID = a.RequestID
	a.Attrs = decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue("x"), decision.IntValue(7)}}
	a.Input, a.Output = []byte("in"), []byte("out")
	a.Candidates = []decision.Candidate{{Action: "allow"}, {Action: "deny"}}
	a.Features, a.Redacted = []float32{1, 2}, []string{"path:mask"}
	r.Record(context.Background(), a, b)
	want := a.Clone()
	a.Input[0], a.Candidates[0].Action, a.Features[0], a.Redacted[0], a.Attrs.Values[1] = '!', "!", 9, "!", decision.IntValue(9)
	led := closeNow(t, r)
	rows := sink.all()
	if len(rows) != 2 || led.Written != 2 || led.Offered != 2 {
		t.Fatalf("%d rows, ledger %+v", len(rows), led)
	}
	got := rows[0]
	if string(got.Input) != "in" || got.Output != nil || got.Candidates[0].Action != "allow" || got.Features[0] != 1 {
		t.Errorf("got %+v", got)
	}
	if got.Attrs.Schema != r.Schema() || got.Attrs.Get("n").Int() != 7 || got.Attrs.Schema.Len() != 1 {
		t.Errorf("attributes %+v", got.Attrs)
	}
	if got.Redacted[0] != "path:mask" || got.InputLen.V != 2 || got.ID != want.ID || got.SourceID != "1" {
		t.Errorf("got %+v", got)
	}
	if rows[1].RequestID != rows[0].RequestID {
		t.Error("the rows of a request were torn apart")
	}
}

func TestLedgerClosesUnderLoad(t *testing.T) {
	fail := errors.New("disk full")
	n := 0
	sink := &memory{}
	sink.onAppend = func(s *snapshot.Snapshot) error {
		switch n++; {
		case n%7 == 0:
			return fail
		case n%11 == 0:
			panic("sink bug")
		case n%500 == 0:
			time.Sleep(time.Millisecond)
		}
		return nil
	}
	sink.onFlush = func() error {
		if n%3 == 0 {
			return fail
		}
		return nil
	}
	r := newRecorder(t, sink, Options{QueueRows: 64, FlushInterval: time.Millisecond, FlushRows: 50, SampleRate: 0.8,
		Capture: Capture{Fields: []CaptureField{{Name: "n", Type: decision.Int}}}})
	const callers, each = 8, 400
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				a, b := row(c*each+i), row(i)
				b.RequestID = a.RequestID
				if i%50 == 0 {
					b.Scenario = "" // invalid
				}
				r.Record(context.Background(), a, b)
				if i%100 == 0 {
					r.Flush(context.Background())
				}
			}
		})
	}
	wg.Wait()
	led := closeNow(t, r)
	if err := led.Check(); err != nil {
		t.Error(err)
	}
	if led.Offered != callers*each*2 {
		t.Errorf("offered %d, want %d", led.Offered, callers*each*2)
	}
	if got := uint64(len(sink.all())); got != led.Written {
		t.Errorf("the sink has %d rows, the ledger says %d", got, led.Written)
	}
	for _, reason := range []string{DropSinkError, DropInvalid} {
		if led.Dropped[reason] == 0 {
			t.Errorf("nothing dropped as %s: %+v", reason, led)
		}
	}
	if led.SampledOut == 0 {
		t.Error("nothing sampled out")
	}
	if err := sink.total.Check(); err != nil {
		t.Errorf("what the sink was told: %v", err)
	}
	if got := sink.lost.SampledOut + sink.lost.DroppedTotal() + led.Written; got != sink.total.Offered {
		t.Errorf("losses told in parts sum up to %+v, the total is %+v", sink.lost, sink.total)
	}
	if s := r.Stats(); s.Panics == 0 || s.AppendErrors == 0 || s.Queued != 0 || s.Acknowledged != led.Written {
		t.Errorf("stats %+v", s)
	}
}

func TestRecordContainsPanics(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{SampleRate: 0.5, Random: func() float64 { panic("no entropy") }})
	r.Record(context.Background(), row(1), row(2))
	if err := r.Wrap(&fake{answer: "b"}).Decide(context.Background(), twoQuestions(), new(decision.Response)); err != nil {
		t.Error(err)
	}
	if led := closeNow(t, r); led.Offered != 4 || led.Dropped[DropPanic] != 4 || r.Stats().Panics != 2 {
		t.Errorf("ledger %+v", led)
	}
}

func TestRecordCutsBodiesAndFillsDefaults(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{MaxBody: 3, EntityKey: key, Capture: Capture{Input: true, Output: true, RawBodies: true, Entity: EntitySource{Attr: "user"}}})
	s := row(1)
	s.KeepProb, s.Input, s.Output, s.Attrs = 0, []byte("12345"), []byte("123"), twoQuestions().Attrs
	cut := row(2)
	cut.Input, cut.InputLen, cut.Entity = []byte("12"), decision.Some(int64(9)), decision.Some([8]byte{1})
	r.Record(context.Background(), s, cut)
	closeNow(t, r)
	rows := sink.all()
	want := sum(key, "ada")
	if got := rows[0]; got.KeepProb != 1 || string(got.Input) != "123" || got.InputLen.V != 5 || got.InputDigest.Set || string(got.Output) != "123" ||
		got.OutputDigest.V != sum(key, "123") || fmt.Sprint(got.Redacted) != "[input:truncated]" || got.Entity.V != [8]byte(want[:8]) {
		t.Errorf("got %+v", got)
	}
	if got := rows[1]; string(got.Input) != "12" || got.InputLen.V != 9 || got.InputDigest.Set || got.Entity.V != [8]byte{1} {
		t.Errorf("got %+v", got)
	}
}
