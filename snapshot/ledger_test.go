package snapshot

import (
	"encoding/json"
	"errors"
	"reflect"
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

func requests(offered, written, sampledOut uint64) *Counts {
	return &Counts{Offered: offered, Written: written, SampledOut: sampledOut}
}

func TestLedgerOfRequests(t *testing.T) {
	for _, c := range []struct {
		name string
		l    Ledger
		want string // "" closes
	}{
		{"not counted", Ledger{Offered: 2, Written: 2}, ""},
		{"nothing", Ledger{Requests: &Counts{}}, ""},
		{"two rows a request", Ledger{Offered: 6, Written: 4, SampledOut: 2, Requests: requests(3, 2, 1)}, ""},
		// The second of two rows was dropped, the request counts as written.
		{"part of a request", Ledger{Offered: 2, Written: 1, Dropped: map[string]uint64{"invalid": 1}, Requests: requests(1, 1, 0)}, ""},
		// The end of a request that began in the segment before.
		{"rows without a first row", Ledger{Offered: 2, Written: 2, Requests: requests(0, 0, 0)}, ""},
		{"requests do not close", Ledger{Offered: 6, Written: 6, Requests: requests(3, 2, 0)}, "requests: ledger does not close"},
		{"requests without rows", Ledger{Offered: 6, Written: 6, Requests: requests(7, 7, 0)}, "written 7 of 6"},
		{"sampled out without rows", Ledger{Offered: 6, Written: 6, Requests: requests(7, 6, 1)}, "sampled out 1 of 0"},
		{"dropped without rows", Ledger{Offered: 6, Written: 6, Requests: &Counts{Offered: 2, Written: 1, Dropped: map[string]uint64{"closed": 1}}}, "dropped 1 of 0"},
		{"rows do not close", Ledger{Offered: 6, Written: 5, Requests: requests(3, 3, 0)}, "offered 6"},
	} {
		err := c.l.Check()
		if c.want == "" && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.want != "" && (!errors.Is(err, ErrLedger) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A sum counts requests when every part that has rows does, in any order of the parts.
func TestLedgerAddRequests(t *testing.T) {
	counted := Ledger{Offered: 4, Written: 3, SampledOut: 1, Requests: requests(2, 1, 1)}
	uncounted := Ledger{Offered: 1, Written: 1}
	dropped := Ledger{Offered: 1, Dropped: map[string]uint64{"closed": 1},
		Requests: &Counts{Offered: 1, Dropped: map[string]uint64{"closed": 1}}}
	rest := Ledger{Offered: 1, Written: 1, Requests: &Counts{}}
	for _, c := range []struct {
		name  string
		parts []Ledger
		want  *Counts
	}{
		{"nothing", []Ledger{{}, {}}, nil},
		{"first", []Ledger{{}, counted}, requests(2, 1, 1)},
		{"last", []Ledger{counted, {}}, requests(2, 1, 1)},
		{"both", []Ledger{counted, counted}, requests(4, 2, 2)},
		{"rest of a request", []Ledger{rest, counted, rest}, requests(2, 1, 1)},
		{"with drops", []Ledger{counted, dropped}, &Counts{Offered: 3, Written: 1, SampledOut: 1, Dropped: map[string]uint64{"closed": 1}}},
		{"one side does not count", []Ledger{counted, uncounted}, nil},
		{"the other", []Ledger{uncounted, counted}, nil},
		{"and stays so", []Ledger{counted, uncounted, counted}, nil},
	} {
		var sum Ledger
		for _, p := range c.parts {
			sum.Add(p)
		}
		if !reflect.DeepEqual(sum.Requests, c.want) || sum.Check() != nil {
			t.Errorf("%s: %+v, want %+v, %v", c.name, sum.Requests, c.want, sum.Check())
		}
	}
	if !reflect.DeepEqual(dropped.Requests.Dropped, map[string]uint64{"closed": 1}) || counted.Requests.Offered != 2 {
		t.Error("a sum shares the counts of a summand")
	}
	a := dropped.Clone()
	a.Requests.Drop("closed", 7)
	a.Requests.Offered += 7
	if dropped.Requests.Offered != 1 || dropped.Requests.DroppedTotal() != 1 {
		t.Errorf("a clone shares its counts: %+v", dropped.Requests)
	}
}

// A ledger without counts of requests is written as before they existed, and read as not
// counted.
func TestLedgerRequestsJSON(t *testing.T) {
	l := Ledger{Offered: 2, Written: 2, Dropped: map[string]uint64{}, Requests: requests(1, 1, 0)}
	got, err := json.Marshal(l)
	want := `{"offered":2,"written":2,"sampled_out":0,"dropped":{},"requests":{"offered":1,"written":1,"sampled_out":0,"dropped":null}}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	var back Ledger
	if err := json.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back, l) {
		t.Errorf("%v: %+v", err, back)
	}
	back = Ledger{}
	if err := json.Unmarshal([]byte(`{"offered":3,"written":3,"sampled_out":0,"dropped":null}`), &back); err != nil || back.Requests != nil {
		t.Errorf("%v: %+v", err, back)
	}
}
