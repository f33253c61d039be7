package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/clefbench/clefbench/backends/flash"
	"github.com/clefbench/clefbench/decision"
)

// The rows of the look-up.
const (
	flashLookUp = "look-up alone"
	flashKey    = "key of 2 numbers, a country and a header's presence, and look-up"
	flashSeen   = "the same and the device of a user agent that was seen"
	flashNew    = "the same and the device of a user agent that is new"
	flashDecide = "Decide, user agent seen"
)

// table is a matrix over a few dimensions, with inputs and what must come out.
type table struct {
	tab    *flash.Table
	inputs []*decision.Request
	want   []string
}

func countries() []string { return []string{"CN", "DE", "FR", "GB", "IN", "JP", "US", "rest"} }

// sizes are the numbers of values, in the order of the dimensions.
func sizes(device bool) []int {
	out := []int{3, 4, len(countries()), 2}
	if device {
		out = append(out, 3)
	}
	return out
}

// newTable compiles a matrix of 192 cells, or of 576 with a device.
func newTable(device bool, inputs, agents int) (*table, error) {
	mapping := map[string]string{"<other>": "rest"}
	for _, c := range countries()[:7] {
		mapping[c] = c
	}
	dims := []any{
		map[string]any{"name": "error", "from": "metrics.error_rate", "values": []string{"low", "mid", "high"}, "mapping": map[string]string{"0-0.03": "low", "0.03-0.1": "mid", "0.1+": "high"}},
		map[string]any{"name": "load", "from": "metrics.load", "values": []string{"a", "b", "c", "d"}, "mapping": map[string]string{"0-0.25": "a", "0.25-0.5": "b", "0.5-0.75": "c", "0.75+": "d"}},
		map[string]any{"name": "env.country", "values": countries(), "mapping": mapping},
		map[string]any{"name": "key", "from": "headers.x-api-key", "classify": "present", "values": []string{"yes", "no"}},
	}
	if device {
		dims = append(dims, map[string]any{"name": "device", "from": "headers.user-agent", "classify": "device", "values": []string{"desktop", "mobile", "tablet"}})
	}
	var actions []any
	for i := range 7 {
		actions = append(actions, map[string]any{"id": i + 1, "type": actionOf(i)})
	}
	cell := 0
	text, err := json.Marshal(map[string]any{"dimensions": dims, "actions": actions, "matrix": matrix(sizes(device), &cell)})
	if err != nil {
		return nil, err
	}
	cfb, err := flash.CompileMatrix("bench.json", text)
	if err != nil {
		return nil, err
	}
	t := &table{}
	if t.tab, err = flash.Open("bench.cfb", cfb); err != nil {
		return nil, err
	}
	return t, t.fill(device, inputs, agents)
}

func actionOf(i int) string { return fmt.Sprintf("a%d", i) }

// matrix nests lists of action ids: cell number modulo 7, plus 1.
func matrix(sizes []int, cell *int) any {
	if len(sizes) == 0 {
		*cell++
		return (*cell-1)%7 + 1
	}
	list := make([]any, sizes[0])
	for i := range list {
		list[i] = matrix(sizes[1:], cell)
	}
	return list
}

func (t *table) fill(device bool, inputs, agents int) error {
	fields := []decision.Field{{Name: "headers.user-agent", Type: decision.String}, {Name: "metrics.error_rate", Type: decision.Double},
		{Name: "metrics.load", Type: decision.Double}, {Name: "env.country", Type: decision.String}, {Name: "headers.x-api-key", Type: decision.String}}
	schema, err := decision.NewSchema(fields...)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(5, uint64(inputs)))
	for i := range inputs {
		agent := i % agents
		country := append(countries()[:7:7], "BR")[r.IntN(8)]
		key := decision.Value{}
		if r.IntN(2) == 0 {
			key = decision.StringValue("k")
		}
		values := []decision.Value{decision.StringValue(agentText(agent)), decision.DoubleValue(r.Float64() / 5), decision.DoubleValue(r.Float64()),
			decision.StringValue(country), key}
		t.inputs = append(t.inputs, &decision.Request{Attrs: decision.Attrs{Schema: schema, Values: values}, Questions: make([]decision.Question, 1)})
		t.want = append(t.want, actionOf(cellOf(values, agent%3, device)%7))
	}
	return nil
}

// agentText is a desktop, phone or tablet in turn.
func agentText(i int) string {
	system := []string{"X11; Linux x86_64", "iPhone; CPU iPhone OS 18_7 like Mac OS X", "iPad; CPU OS 18_7 like Mac OS X"}[i%3]
	return fmt.Sprintf("Mozilla/5.0 (%s) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.%d.0 Safari/537.36", system, i)
}

// cellOf is the cell, worked out by hand.
func cellOf(values []decision.Value, device int, withDevice bool) int {
	rate, load := values[1].Double(), values[2].Double()
	x := 0
	if rate >= 0.03 {
		x = 1
	}
	if rate >= 0.1 {
		x = 2
	}
	x = x*4 + min(3, int(load*4))
	country := slices.Index(countries(), values[3].Str())
	if country < 0 {
		country = 7
	}
	x = x*8 + country
	x *= 2
	if values[4].IsNull() {
		x++
	}
	if withDevice {
		x = x*3 + device
	}
	return x
}

func (t *table) gate() error {
	var out decision.Response
	for i, req := range t.inputs {
		if err := t.tab.Decide(context.Background(), req, &out); err != nil {
			return err
		}
		label, _, ok := t.tab.At(t.tab.Key(req.Attrs))
		if d := out.Decisions[0]; d.Action != t.want[i] || !ok || label != t.want[i] {
			return fmt.Errorf("flash, input %d: Decide %q, Key and At %q, want %q", i, d.Action, label, t.want[i])
		}
	}
	return nil
}

// flashCases are the rows of the look-up. What each run adds up keeps the compiler from
// leaving it out.
func flashCases() ([]*benchmark, error) {
	plain, err := newTable(false, nInputs, nAgents)
	if err != nil {
		return nil, err
	}
	seen, err := newTable(true, nInputs, nAgents)
	if err != nil {
		return nil, err
	}
	fresh, err := newTable(true, 1<<14, 1<<14) // 16 times what the table remembers
	if err != nil {
		return nil, err
	}
	for _, t := range []*table{plain, seen, fresh} {
		if err := t.gate(); err != nil {
			return nil, err
		}
	}
	keys := make([]int, nInputs)
	for i, req := range seen.inputs {
		keys[i] = seen.tab.Key(req.Attrs)
	}
	sink := 0
	var out decision.Response
	return []*benchmark{
		{name: flashLookUp, per: nInputs, run: func() {
			for _, k := range keys {
				label, _, _ := seen.tab.At(k)
				sink += len(label)
			}
		}},
		{name: flashKey, per: nInputs, run: func() { sink += plain.pass() }},
		{name: flashSeen, per: nInputs, run: func() { sink += seen.pass() }},
		{name: flashNew, per: 1 << 14, run: func() { sink += fresh.pass() }},
		{name: flashDecide, per: nInputs, run: func() {
			for _, req := range seen.inputs {
				if err := seen.tab.Decide(context.Background(), req, &out); err != nil {
					panic(err) // it passed the gate
				}
			}
		}},
	}, nil
}

func (t *table) pass() int {
	n := 0
	for _, req := range t.inputs {
		label, _, _ := t.tab.At(t.tab.Key(req.Attrs))
		n += len(label)
	}
	return n
}
