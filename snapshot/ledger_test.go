package snapshot

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestLedger(t *testing.T) {
	var l Ledger
	if err := l.Check(); err != nil {
		t.Errorf("an empty ledger: %v", err)
	}
	l.Drop("queue-full", 0)
	if l.Dropped != nil {
		t.Errorf("nothing was dropped, but %v", l.Dropped)
	}
	l.Offered, l.Written, l.SampledOut = 10, 4, 1
	l.Drop("queue-full", 2)
	l.Drop("sink-error", 1)
	l.Drop("queue-full", 1)
	err := l.Check()
	if !errors.Is(err, ErrLedger) || !strings.Contains(err.Error(), "offered 10, but written 4 + sampled out 1 + dropped 4 = 9") {
		t.Errorf("one row is missing: %v", err)
	}
	l.Written++
	if err := l.Check(); err != nil || l.DroppedTotal() != 4 || l.Dropped["queue-full"] != 3 {
		t.Errorf("%v: %+v", err, l)
	}
	l.Written++
	if err := l.Check(); !errors.Is(err, ErrLedger) {
		t.Errorf("one row too many: %v", err)
	}
}

func TestLedgerAddAndClone(t *testing.T) {
	a := Ledger{Offered: 3, Written: 1, SampledOut: 1}
	a.Drop("closed", 1)
	b := a.Clone()
	b.Drop("closed", 5)
	b.Drop("invalid", 2)
	if a.Dropped["closed"] != 1 || len(a.Dropped) != 1 {
		t.Errorf("a clone shares its map: %+v", a)
	}
	if c := (Ledger{}).Clone(); c.Dropped != nil {
		t.Errorf("the clone of an empty ledger: %+v", c)
	}
	var sum Ledger
	for range 3 {
		sum.Add(a)
	}
	if sum.Offered != 9 || sum.Written != 3 || sum.SampledOut != 3 || sum.Dropped["closed"] != 3 || sum.Check() != nil {
		t.Errorf("sum %+v", sum)
	}
	sum.Dropped["closed"] = 0
	if a.Dropped["closed"] != 1 {
		t.Error("a sum shares the map of a summand")
	}
}

// The names are a contract: they stand in segment metadata and in report.json.
func TestLedgerJSON(t *testing.T) {
	l := Ledger{Offered: 3, Written: 1, SampledOut: 1, Dropped: map[string]uint64{"queue-full": 1}}
	got, err := json.Marshal(l)
	if want := `{"offered":3,"written":1,"sampled_out":1,"dropped":{"queue-full":1}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	var back Ledger
	if err := json.Unmarshal(got, &back); err != nil || back.Check() != nil || back.Offered != 3 {
		t.Errorf("%v: %+v", err, back)
	}
}
