package recorder

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// fill gives every part of a value something that is not zero, and that differs by n.
func fill(v reflect.Value, n int64) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("s", n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(n)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(n))
	case reflect.Array, reflect.Slice:
		if v.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		}
		for i := range v.Len() {
			fill(v.Index(i), n+int64(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(n, n).UTC()))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n+int64(i))
		}
	default:
		panic("a Snapshot has a new kind of field: " + v.Kind().String())
	}
}

// columns are the fields of a Snapshot that a slab keeps, each alone: its parts too, since
// the absence of one must not take another with it.
func columns(t *testing.T) [][]int {
	var paths [][]int
	var walk func(ty reflect.Type, path []int)
	walk = func(ty reflect.Type, path []int) {
		for i := range ty.NumField() {
			f, at := ty.Field(i), append(append([]int(nil), path...), i)
			switch {
			case f.Name == "Ref" || f.Name == "Attrs":
			case f.Type.Kind() == reflect.Struct && f.Type.NumField() > 2 && f.Type != reflect.TypeFor[time.Time](), f.Name == "Terms":
				walk(f.Type, at)
			default:
				paths = append(paths, at)
			}
		}
	}
	walk(reflect.TypeFor[snapshot.Snapshot](), nil)
	if len(paths) < 60 {
		t.Fatalf("only %d columns", len(paths))
	}
	return paths
}

// Every column of a row comes out of a slab as it went in, alone and with all the others.
func TestSlabKeepsEveryColumn(t *testing.T) {
	r := newRecorder(t, &memory{}, Options{Capture: Capture{All: true, Input: true, Output: true}})
	schema, _ := decision.NewSchema(decision.Field{Name: "a", Type: decision.String})
	all := &snapshot.Snapshot{}
	fill(reflect.ValueOf(all).Elem().FieldByName("Candidates"), 5)
	rows := []*snapshot.Snapshot{{KeepProb: 1}, all, {KeepProb: 1, Attrs: decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue("x")}}},
		{KeepProb: 1, Candidates: []decision.Candidate{}, Features: []float32{}, Redacted: []string{}, Input: []byte{}, Output: []byte{}, InputLen: decision.Some(int64(0))}}
	for i, path := range columns(t) {
		one := &snapshot.Snapshot{KeepProb: 1}
		fill(reflect.ValueOf(one).Elem().FieldByIndex(path), int64(i+1))
		fill(reflect.ValueOf(all).Elem().FieldByIndex(path), int64(i+1))
		if one.Input != nil {
			one.InputLen = decision.Some(int64(2))
		}
		rows = append(rows, one, one)
	}
	all.InputLen = decision.Some(int64(2))
	sl := newSlab(4)
	for range 2 { // the second time in memory that was used
		q := request{r: r, rows: rows, keep: 1}
		q.pack(sl)
		for i, want := range rows {
			var s slot
			sl.rows[i].unpack(&s)
			got := s.row
			got.Input, got.Output = s.in.data, s.out.data
			if got.Attrs.Values == nil {
				got.Attrs.Values = want.Attrs.Values
			}
			if !reflect.DeepEqual(&got, want) {
				t.Errorf("row %d\ngot  %+v\nwant %+v", i, &got, want)
			}
		}
		sl.reset()
		if len(sl.rows)+len(sl.bytes)+len(sl.values)+len(sl.notes) > 0 || !reflect.ValueOf(sl.rows[:1][0]).IsZero() {
			t.Fatal("reset left something behind")
		}
	}
}

// What a slab holds is its own, also of the rows that came before its arrays grew, and no
// row can be appended to into the next one.
func TestSlabSharesNothing(t *testing.T) {
	r := newRecorder(t, &memory{}, Options{Capture: Capture{All: true, Input: true, Output: true}})
	schema, _ := decision.NewSchema(decision.Field{Name: "a", Type: decision.String})
	sl := newSlab(2)
	var rows, want []*snapshot.Snapshot
	for i := range 50 {
		s := &snapshot.Snapshot{KeepProb: 1, Input: []byte{byte(i)}, Output: []byte{byte(i), 1}, Features: []float32{float32(i)}, Ref: snapshot.Ref{Segment: "x", Row: 7},
			Candidates: []decision.Candidate{{Action: fmt.Sprint(i)}}, Redacted: []string{fmt.Sprint("r", i)}, InputLen: decision.Some(int64(1)),
			Attrs: decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue(fmt.Sprint("v", i))}}}
		kept := s.Clone()
		kept.Ref = snapshot.Ref{}
		rows, want = append(rows, s), append(want, kept)
	}
	q := request{r: r, rows: rows, keep: 1}
	q.pack(sl)
	for _, s := range rows {
		s.Input[0], s.Output[0], s.Features[0] = 255, 255, -1
		s.Candidates[0].Action, s.Redacted[0], s.Attrs.Values[0] = "other", "other", decision.Value{}
	}
	for i := range want {
		var s slot
		sl.rows[i].unpack(&s)
		got := s.row
		got.Input, got.Output = s.in.data, s.out.data
		if !reflect.DeepEqual(&got, want[i]) {
			t.Fatalf("row %d\ngot  %+v\nwant %+v", i, &got, want[i])
		}
		_ = append(got.Input, 254)
		_ = append(got.Features, -2)
		_ = append(got.Candidates, decision.Candidate{Action: "next"})
		_ = append(got.Redacted, "next")
		_ = append(got.Attrs.Values, decision.Value{})
	}
}

// One that grew beyond ordinary size gives its memory back, an ordinary one keeps it.
func TestSlabMemoryIsBounded(t *testing.T) {
	sl := newSlab(4)
	sl.bytes, sl.values = make([]byte, 5*slabBytes), make([]decision.Value, 100)
	sl.reset()
	if cap(sl.bytes) != 0 || cap(sl.values) != 100 {
		t.Errorf("kept %d bytes and %d values", cap(sl.bytes), cap(sl.values))
	}
}

// A queue of many slabs and shards: a caller's requests arrive in its order, each once, and
// a Flush covers what was handed over before it.
func TestOrderOfACaller(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{QueueRows: 1 << 16, FlushInterval: time.Millisecond, Capture: Capture{Input: true}})
	const callers, each = 6, 3000
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				s := row(1)
				s.Scenario, s.Cost, s.Input = fmt.Sprint(c), decision.Some(int64(i)), make([]byte, i%300)
				r.Record(context.Background(), s, s)
				if i == each/2 {
					if n, err := r.Flush(context.Background()); err != nil || n < uint64(2*i) {
						t.Errorf("flush: %d, %v", n, err)
					}
				}
			}
		})
	}
	wg.Wait()
	closeNow(t, r)
	next := map[string]int64{}
	for _, s := range sink.all() {
		if n := next[s.Scenario]; s.Cost.V != n/2 {
			t.Fatalf("caller %s: request %d came where %d was due", s.Scenario, s.Cost.V, n/2)
		}
		next[s.Scenario]++
	}
	if len(next) != callers || next["0"] != 2*each {
		t.Errorf("rows by caller: %v", next)
	}
}

// Under even traffic the drain comes by itself, before the callers have to wake it, and
// keeps away while there is none.
func TestDrainKeepsPace(t *testing.T) {
	sink := &memory{}
	bubble(t, sink, Options{QueueRows: 400, FlushInterval: time.Second}, func(r *Recorder) {
		most := 0
		for i := range 5000 {
			time.Sleep(time.Millisecond)
			r.Record(context.Background(), row(i))
			if i > 1100 { // from the first look on
				most = max(most, r.Stats().Queued)
			}
		}
		if most < 25 || most > 75 { // 100 wake it
			t.Errorf("up to %d rows waited, half of 100 are wanted", most)
		}
	})
}

// The order of tickets is kept over the point where they wrap around.
func TestBudgetWrapsAround(t *testing.T) {
	b := budget{maxRows: maxQueueRows, maxBytes: maxQueueBytes}
	b.in.Store(-uint64(countOf(10, 5)))
	b.out.Store(b.in.Load())
	b.taken.Store(b.in.Load())
	rnd := rand.New(rand.NewPCG(1, 2))
	var last uint64
	type held struct {
		n    int
		size int64
	}
	var queue []held
	rows, bytes := 0, int64(0)
	for i := range 10000 {
		h := held{1 + rnd.IntN(5), rnd.Int64N(1 << 30)}
		ticket, after, ok := b.reserve(h.n, h.size)
		if want := rows+h.n <= maxQueueRows && bytes+h.size <= maxQueueBytes; ok != want {
			t.Fatalf("request %d: reserve says %v with %d rows, %d bytes held", i, ok, rows, bytes)
		}
		if ok {
			if i > 0 && !earlier(last, ticket) {
				t.Fatalf("request %d: ticket %x after %x", i, ticket, last)
			}
			last = ticket
			queue = append(queue, h)
			rows, bytes = rows+h.n, bytes+h.size
			if after != countOf(rows, bytes) {
				t.Fatalf("request %d: %x held, want %x", i, after, countOf(rows, bytes))
			}
		}
		if got := b.held(); got.rows() != rows || got.bytes() != bytes {
			t.Fatalf("request %d: held %d rows, %d bytes, want %d, %d", i, got.rows(), got.bytes(), rows, bytes)
		}
		for len(queue) > 0 && (!ok || rnd.IntN(2) == 0) {
			b.release(countOf(queue[0].n, queue[0].size))
			rows, bytes, queue, ok = rows-queue[0].n, bytes-queue[0].size, queue[1:], true
		}
	}
	if b.ever(maxQueueRows+1, 0) || b.ever(1, maxRequestBytes+1) || !b.ever(1, maxRequestBytes) {
		t.Error("what never fits")
	}
}
