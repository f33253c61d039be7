package flash

import (
	"context"
	"crypto/sha256"
	"strconv"
	"strings"

	"github.com/clefbench/clefbench/decision"
)

// RuleFallback is the rule id of a decision that the fallback action made.
const RuleFallback = "fallback"

// Table decides by look-up in an opened .cfb file. It is safe for concurrent use and
// holds no reference to the file's bytes.
type Table struct {
	name string
	info decision.Info
	c    *content
	bind *decision.Binder
	axes []axis
	// names holds the cell's values joined by slashes, for the rule id.
	names []string
}

// Open verifies a .cfb file and makes it ready. name stands in errors, which wrap
// [ErrCorrupt] and carry the offset.
func Open(name string, cfb []byte) (*Table, error) {
	c, err := decode(name, cfb)
	if err != nil {
		return nil, err
	}
	t := &Table{name: name, c: c, axes: make([]axis, len(c.dims))}
	attrs := make([]string, len(c.dims))
	stride := len(c.cells)
	for i := range c.dims {
		d := &c.dims[i]
		stride /= len(d.values)
		t.axes[i] = newAxis(d, stride)
		attrs[i] = d.from
	}
	t.bind = decision.NewBinder(attrs...)
	t.nameCells()
	t.info = decision.Info{
		Name: name, Kind: "flash", Scenarios: c.scenarios, Attributes: unique(attrs),
		Artefact:     decision.Artefact{EngineVersion: "cfb/" + strconv.Itoa(formatVersion), StrategyVersion: c.version, StrategyDigest: sha256.Sum256(cfb)},
		Capabilities: decision.Capabilities{Deterministic: true, Timeout: decision.TimeoutChecked},
	}
	return t, nil
}

func unique(in []string) []string {
	seen, out := map[string]bool{}, []string{}
	for _, s := range in {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// nameCells makes all names in one string, so that they are cheap to keep.
func (t *Table) nameCells() {
	var b strings.Builder
	b.Grow(t.c.nameBytes())
	ends := make([]int, len(t.c.cells))
	for i := range t.c.cells {
		for k := range t.axes {
			if k > 0 {
				b.WriteByte('/')
			}
			values := t.axes[k].values
			b.WriteString(values[i/t.axes[k].stride%len(values)])
		}
		ends[i] = b.Len()
	}
	all, start := b.String(), 0
	t.names = make([]string, len(ends))
	for i, end := range ends {
		t.names[i] = all[start:end]
		start = end
	}
}

// Info describes the table; the strategy digest is the SHA-256 of the .cfb bytes.
func (t *Table) Info() decision.Info {
	i := t.info
	i.Scenarios = append([]string(nil), i.Scenarios...)
	i.Attributes = append([]string(nil), i.Attributes...)
	return i
}

// Source returns the base name of the matrix file that the table was compiled from, and
// the SHA-256 of its bytes.
func (t *Table) Source() (name string, digest [32]byte) { return t.c.source, t.c.digest }

// Decide looks the request up. All questions of a request have the same answer.
func (t *Table) Decide(_ context.Context, req *decision.Request, out *decision.Response) error {
	out.Reset(len(req.Questions))
	out.Artefact = t.info.Artefact
	cell, skipped := t.cell(req.Attrs)
	for i := range out.Decisions {
		t.answer(&out.Decisions[i], cell, skipped)
	}
	return nil
}

func (t *Table) answer(d *decision.Decision, cell int, skipped uint16) {
	d.Reason = decision.Reason{Kind: decision.ReasonTableHit, Skipped: skipped}
	chosen := uint16(noDigit)
	switch {
	case cell >= 0:
		chosen = t.c.cells[cell]
		d.Reason.Rule = t.names[cell]
	case t.c.fallback != noDigit:
		chosen = t.c.fallback
		d.Reason.Kind, d.Reason.Rule = decision.ReasonTableMiss, RuleFallback
	default:
		d.Reason.Kind = decision.ReasonTableMiss
		d.Status = decision.Abstain
		return
	}
	a := &t.c.actions[chosen]
	d.Status, d.Action, d.Params = decision.OK, a.label, a.params
}

// cell returns the index of the request's cell, or -1 for a miss, and the number of
// dimensions whose attribute is missing without a value for that.
func (t *Table) cell(attrs decision.Attrs) (cell int, skipped uint16) {
	at := t.bind.Bind(attrs.Schema)
	hit := true
	var absent decision.Value
	for i := range t.axes {
		a, v := &t.axes[i], &absent // a Value is four words: it stays where it is
		if p := at[i]; p >= 0 && p < len(attrs.Values) {
			v = &attrs.Values[p]
		}
		digit := a.place(v)
		if digit == noDigit {
			hit = false
			if isMissing(v) {
				skipped++
			}
			continue
		}
		cell += int(digit) * a.stride
	}
	if !hit {
		return -1, skipped
	}
	return cell, skipped
}

// Key returns the number of the cell that attributes fall into, and -1 for a miss. It is
// the dear part of a decision; a caller that keeps keys can use [Table.At] alone.
func (t *Table) Key(attrs decision.Attrs) int {
	cell, _ := t.cell(attrs)
	return cell
}

// At returns the action of a cell that Key gave, with its parameters as JSON, and that of
// the fallback for -1; ok is false where there is none. It panics for a number that Key
// never gives.
func (t *Table) At(key int) (label, params string, ok bool) {
	chosen := t.c.fallback
	if key >= 0 {
		chosen = t.c.cells[key]
	}
	if chosen == noDigit {
		return "", "", false
	}
	a := &t.c.actions[chosen]
	return a.label, a.params, true
}

// Close does nothing: a table holds no resource.
func (t *Table) Close(context.Context) error { return nil }

// Explain names the value on each dimension and the matrix line of the cell. Attribute
// values themselves are not repeated.
func (t *Table) Explain(_ context.Context, req *decision.Request) (*decision.Explanation, error) {
	cell, skipped := t.cell(req.Attrs)
	var d decision.Decision
	t.answer(&d, cell, skipped)
	e := &decision.Explanation{Reason: d.Reason, Cited: append([]string(nil), t.info.Attributes...)}
	parts := make([]string, len(t.axes))
	for i := range t.axes {
		a := &t.axes[i]
		v := req.Attrs.Get(a.from)
		parts[i] = a.name + "=" + a.label(v)
		if a.digit(v) == noDigit {
			e.Skipped = append(e.Skipped, a.skipped(v))
		}
	}
	e.Text = t.sentence(&d, cell) + ": " + strings.Join(parts, ", ")
	e.Position = t.position(cell)
	return e, nil
}

func (t *Table) sentence(d *decision.Decision, cell int) string {
	switch {
	case cell >= 0:
		return "cell " + strconv.Itoa(cell) + " gives " + d.Action
	case t.c.fallback != noDigit:
		return "no cell for this key, the fallback gives " + d.Action
	}
	return "no cell for this key and no fallback"
}

// position is the line of the cell's row, or of the fallback. The compiler keeps lines
// only: a row is usually written on one.
func (t *Table) position(cell int) decision.Position {
	p := decision.Position{File: t.c.source}
	switch {
	case cell >= 0:
		p.Line = t.c.lines[cell/len(t.c.dims[len(t.c.dims)-1].values)]
	case t.c.fallback != noDigit:
		p.Line = t.c.fallbackLine
	}
	return p
}
