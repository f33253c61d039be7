package decision

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// What goes into a batch comes out of it, absent values and repeated texts included.
func TestBatchHoldsItsRows(t *testing.T) {
	s, err := NewSchema(Field{"b", Bool}, Field{"i", Int}, Field{"d", Double}, Field{"s", String})
	if err != nil {
		t.Fatal(err)
	}
	b := NewBatch(s)
	rows := [][]Value{
		{BoolValue(true), IntValue(-5), DoubleValue(math.Inf(1)), StringValue("x")},
		{BoolValue(false), {}, DoubleValue(0.5), StringValue("")},
		{{}, IntValue(7), {}, {}},
		{BoolValue(true)},
		{},
		{BoolValue(false), IntValue(0), DoubleValue(0), StringValue("x")},
	}
	at := time.Unix(5, 6)
	for i, r := range rows {
		if err := b.Append(r, at.Add(time.Duration(i))); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range rows {
		for c := range 4 {
			want := Attrs{s, r}.At(c)
			if got := b.Column(c).Value(i); got != want {
				t.Errorf("row %d, column %d: %v, want %v", i, c, got, want)
			}
		}
		if !b.Now(i).Equal(at.Add(time.Duration(i))) {
			t.Errorf("row %d: %v", i, b.Now(i))
		}
	}
	if c := b.Column(3); b.Len() != len(rows) || b.Schema() != s || len(c.Texts) != 2 {
		t.Errorf("%d rows, texts %q", b.Len(), c.Texts)
	}
}

func TestBatchHoldsFeatures(t *testing.T) {
	b := NewBatch(nil)
	b.SetFeatures("none", []float32{1}) // there is no row yet
	for i := range 4 {
		if err := b.Append(nil, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 {
			b.SetFeatures("f", []float32{float32(i), float32(-i)})
		}
	}
	for i := range 4 {
		set, v := b.Features(i)
		if i%2 == 0 && (set != "" || v != nil) || i%2 == 1 && (set != "f" || len(v) != 2 || v[0] != float32(i) || v[1] != float32(-i)) {
			t.Errorf("row %d: %q %v", i, set, v)
		}
	}
}

func TestBatchRefuses(t *testing.T) {
	s, err := NewSchema(Field{"i", Int})
	if err != nil {
		t.Fatal(err)
	}
	b := NewBatch(s)
	for _, r := range [][]Value{{DoubleValue(1)}, {IntValue(1), IntValue(2)}} {
		if err := b.Append(r, time.Time{}); err == nil || b.Len() != 0 {
			t.Errorf("%v: %v, %d rows", r, err, b.Len())
		}
	}
}

func ExampleAnswers() {
	var a Answers
	a.Reset(2)
	a.Actions, a.Rules = append(a.Actions, "block"), append(a.Rules, "R1")
	a.Rows[0] = Answer{Status: OK, Kind: ReasonMatch, Action: 0, Rule: 0}
	a.Rows[1].Status = Abstain
	for i := range a.Rows {
		d := a.At(i)
		fmt.Printf("%v %q by %q\n", d.Status, d.Action, d.Reason.Rule)
	}
	// Output:
	// ok "block" by "R1"
	// abstain "" by ""
}
