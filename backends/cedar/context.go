package cedar

import (
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cedar-policy/cedar-go"

	"github.com/clefbench/clefbench/decision"
)

// digits is the scale of Cedar's decimals: four digits after the point.
const digits = 1e4

// decimal converts a double. Without round it is false for a double that is not the
// nearest to a decimal of four digits; with it, halves go away from zero. It is false in
// any case for NaN, infinities, and beyond 2^53/10^4, where doubles lie further apart than
// decimals. (cedar-go's own NewDecimalFromFloat cuts digits off without a word.)
func decimal(x float64, round bool) (cedar.Decimal, bool) {
	n := math.Round(x * digits)
	if !(math.Abs(n) <= 1<<53) || !round && n/digits != x {
		return cedar.Decimal{}, false
	}
	d, err := cedar.NewDecimal(int64(n), -4)
	return d, err == nil
}

// value converts an attribute; false leaves it out.
func value(v decision.Value, round bool) (cedar.Value, bool) {
	switch v.Type() {
	case decision.Bool:
		return cedar.Boolean(v.Bool()), true
	case decision.Int:
		return cedar.Long(v.Int()), true
	case decision.Double:
		d, ok := decimal(v.Double(), round)
		return d, ok
	case decision.String:
		return cedar.String(v.Str()), true
	}
	return nil, false
}

// group is the attributes of a schema with one first part; those without a dot stand in
// the group without a name.
type group struct {
	name   cedar.String
	fields []field
}

type field struct {
	at  int
	key cedar.String
}

// plan keeps the groups of the last schema, as [decision.Binder] does.
type plan struct {
	file *file
	last atomic.Pointer[bound]
}

type bound struct {
	schema *decision.Schema
	groups []group
}

// of returns the groups of a schema, the one without a name first.
func (p *plan) of(s *decision.Schema) []group {
	if l := p.last.Load(); l != nil && l.schema == s {
		return l.groups
	}
	b := &bound{schema: s, groups: make([]group, 1, 1+len(namespaces()))}
	for _, n := range namespaces() {
		b.groups = append(b.groups, group{name: cedar.String(n)})
	}
	for i, f := range s.Fields() {
		if !p.file.open && !slices.Contains(p.file.reads, f.Name) {
			continue
		}
		first, key, dotted := strings.Cut(f.Name, ".")
		if !dotted {
			first, key = "", f.Name
		}
		at := slices.IndexFunc(b.groups, func(g group) bool { return string(g.name) == first })
		if at < 0 {
			at = len(b.groups)
			b.groups = append(b.groups, group{name: cedar.String(first)})
		}
		b.groups[at].fields = append(b.groups[at].fields, field{i, cedar.String(key)})
	}
	p.last.Store(b)
	return b.groups
}

// namespaces are records of the context in any case, so that `has` can be asked of them.
func namespaces() []string {
	return []string{"headers", "query", "metrics", "env", "local", "state"}
}

// context builds the record that policies read. A name without a dot that is also a first
// part gives way to the record.
func (p *plan) context(attrs *decision.Attrs) cedar.Record {
	groups := p.of(attrs.Schema)
	top := make(cedar.RecordMap, len(groups)+len(groups[0].fields))
	p.put(top, groups[0].fields, attrs)
	for _, g := range groups[1:] {
		m := make(cedar.RecordMap, len(g.fields))
		p.put(m, g.fields, attrs)
		top[g.name] = cedar.NewRecord(m)
	}
	return cedar.NewRecord(top)
}

func (p *plan) put(m cedar.RecordMap, fields []field, attrs *decision.Attrs) {
	for _, f := range fields {
		if v, ok := value(attrs.At(f.at), p.file.round); ok {
			m[f.key] = v
		}
	}
}

// leftOut lists the doubles that a policy names and Cedar cannot hold.
func (p *plan) leftOut(names []string, attrs *decision.Attrs) []string {
	var out []string
	for _, n := range names {
		if v := attrs.Get(n); v.Type() == decision.Double {
			if _, ok := decimal(v.Double(), p.file.round); !ok {
				out = append(out, n)
			}
		}
	}
	return out
}
