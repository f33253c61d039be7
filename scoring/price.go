package scoring

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/snapshot"
)

// The units of a price book.
const (
	UnitDecision   = "decision"
	UnitTokensIn   = "1M-tokens-in"
	UnitTokensOut  = "1M-tokens-out"
	UnitCPUSecond  = "cpu-second"
	UnitGiBEgress  = "GiB-egress"
	unitProvider   = "provider cost" // as the provider named it; not a unit of price books
	nanoPerUnit    = 1e9
	tokensPerUnit  = 1e6
	bytesPerEgress = 1 << 30
)

func units() []string {
	return []string{UnitDecision, UnitTokensIn, UnitTokensOut, UnitCPUSecond, UnitGiBEgress}
}

// meter counts how much of something a lane used, in whole small units (decisions,
// tokens, nanoseconds, bytes, nano-currency), so that sums are exact; price is that of
// one small unit.
type meter struct {
	unit, model string
	price       float64
	receipt     Price
}

// meters are the prices that apply to one lane.
type meters struct {
	list  []meter // list[0] is what providers named themselves
	units []string
	// na says why the lane has no price; empty when it has.
	na string
}

// newMeters picks a lane's prices: the entries of its name, else those of its kind,
// else those for any backend ("*"). The first level that has an entry is the lane's
// whole price, and its units add up: an entry for "*" by CPU second does not burden a
// backend that has a price of its own. Within a level, an entry for the resolved model
// goes before one without a model.
func newMeters(book *PriceBook, lane Lane) meters {
	m := meters{list: []meter{{unit: unitProvider, price: 1 / nanoPerUnit}}}
	if book == nil {
		m.na = "no price book"
		return m
	}
	for _, level := range []string{lane.Name, lane.Kind, "*"} {
		for _, p := range book.Prices {
			if p.Backend == level {
				m.add(p)
			}
		}
		if len(m.units) > 0 {
			return m
		}
	}
	return m
}

func (m *meters) add(p Price) {
	small := map[string]float64{
		UnitDecision: 1, UnitTokensIn: tokensPerUnit, UnitTokensOut: tokensPerUnit,
		UnitCPUSecond: nanoPerUnit, UnitGiBEgress: bytesPerEgress,
	}
	m.list = append(m.list, meter{unit: p.Unit, model: p.Model, price: p.Price / small[p.Unit], receipt: p})
	if !slices.Contains(m.units, p.Unit) {
		m.units = append(m.units, p.Unit)
	}
}

// find returns the meter of a unit for a model, or -1.
func (m *meters) find(unit, model string) int {
	general := -1
	for i := 1; i < len(m.list); i++ {
		switch e := &m.list[i]; {
		case e.unit != unit:
		case e.model != "" && e.model == model:
			return i
		case e.model == "" && general < 0:
			general = i
		}
	}
	return general
}

// reading is what one row adds to one meter.
type reading struct {
	meter    int
	quantity uint64
}

// charge is what one row cost. A request's usage stands on all of its rows and is read
// on the first; decisions are counted on every row.
type charge struct {
	readings [6]reading
	n        int
	// unknown says what could not be read: a unit's usage, or the price of a model.
	unknown string
}

func (c *charge) add(meter int, quantity int64) {
	c.readings[c.n] = reading{meter, uint64(quantity)}
	c.n++
}

// read prices a row; first says that it is the first row of its request.
func (m *meters) read(o *snapshot.Outcome, first bool) (c charge) {
	if o.Cost.Set && o.Cost.V >= 0 {
		if first {
			c.add(0, o.Cost.V)
		}
		return c
	}
	if len(m.units) == 0 {
		c.unknown = "no price for " + o.Backend
		return c
	}
	for _, unit := range m.units {
		if unit != UnitDecision && !first {
			continue
		}
		i := m.find(unit, o.Artefact.ModelResolved)
		quantity, known := quantityOf(o, unit)
		switch {
		case i < 0:
			c.unknown = fmt.Sprintf("no price for %s of model %q", unit, o.Artefact.ModelResolved)
		case !known:
			c.unknown = "unknown usage: " + unit
		default:
			c.add(i, quantity)
		}
	}
	return c
}

// quantityOf reads the usage of a unit in small units. Egress is what the backend sent
// out: the answer's bytes.
func quantityOf(o *snapshot.Outcome, unit string) (quantity int64, known bool) {
	u := &o.Usage
	switch unit {
	case UnitDecision:
		return int64(max(1, o.Attempts.Or(1))), true
	case UnitTokensIn:
		return u.TokensIn.V, u.TokensIn.Set && u.TokensIn.V >= 0
	case UnitTokensOut:
		return u.TokensOut.V, u.TokensOut.Set && u.TokensOut.V >= 0
	case UnitCPUSecond:
		return int64(u.CPU.V), u.CPU.Set && u.CPU.V >= 0
	case UnitGiBEgress:
		return u.BytesOut.V, u.BytesOut.Set && u.BytesOut.V >= 0
	}
	return 0, false
}

// evidence names the prices in words.
func (m *meters) evidence(book *PriceBook) string {
	if book == nil {
		return ""
	}
	digest := book.Digest
	if len(digest) > 12 {
		digest = digest[:12]
	}
	text := "price book " + digest
	if book.Currency != "" {
		text += " (" + book.Currency + ")"
	}
	if len(m.units) > 0 {
		text += ": per " + strings.Join(m.units, " + ")
	}
	return text
}
