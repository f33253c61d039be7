package recorder

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math"
	"sort"
	"strconv"
	"sync/atomic"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/secret"
)

// mac is a keyed hash that is used by one goroutine and reused; nil without a key.
type mac struct {
	h   hash.Hash
	sum []byte
}

func newMAC(key []byte) *mac {
	if len(key) == 0 {
		return nil
	}
	return &mac{h: hmac.New(sha256.New, key)}
}

func (m *mac) of(b []byte) [32]byte {
	m.h.Reset()
	m.h.Write(b)
	m.sum = m.h.Sum(m.sum[:0])
	return [32]byte(m.sum)
}

// apply redacts vals in place (they are copies already) and appends to notes what it
// did. On an error the values may be half done and must not be used.
func (p *plan) apply(vals []decision.Value, notes []string, m *mac, s *secret.Scanner) ([]string, error) {
	for i := range vals {
		if vals[i].IsNull() {
			continue
		}
		f := &p.fields[i]
		if f.queryNote != "" && f.Redact != Drop {
			notes = cutURL(&vals[i], f.queryNote, notes)
		}
		v, note, err := f.redact(vals[i], m)
		if err != nil {
			return notes, fmt.Errorf("attribute %s: %w", f.Name, err)
		}
		vals[i] = v
		if note != "" {
			notes = append(notes, note)
		}
		if f.Redact == Keep && !f.Raw {
			notes = cleanValue(&vals[i], f.Name, notes, s)
		}
	}
	return notes, nil
}

// looksAt reports whether secrets are looked for in an attribute.
func (p *plan) looksAt(i int) bool {
	return p.All || p.fields[i].Redact == Keep && !p.fields[i].Raw
}

// redact returns the value to store and, when it is not the original, a note.
func (f *field) redact(v decision.Value, m *mac) (decision.Value, string, error) {
	if f.Func != nil {
		var err error
		if v, err = f.Func(v); err != nil {
			return decision.Value{}, "", err
		}
		if v.IsNull() {
			return v, f.Name + ":" + string(Drop), nil
		}
	}
	switch f.Redact {
	case Drop:
		return decision.Value{}, f.note, nil
	case Mask:
		return decision.StringValue(mask(v.String(), f.KeepFirst)), f.note, nil
	case Hash:
		if m == nil {
			return decision.Value{}, "", errors.New("no key to hash with")
		}
		sum := m.of([]byte(v.String()))
		return decision.StringValue(hex.EncodeToString(sum[:16])), f.note, nil
	}
	v, ok := coerce(v, f.Type)
	switch {
	case !ok:
		return decision.Value{}, f.typeNote, nil
	case f.Redact == Bucket:
		v, note := f.bucket(v)
		return v, note, nil
	case f.Func != nil:
		return v, f.Name + ":rewritten", nil
	}
	return v, "", nil
}

func mask(s string, keep int) string {
	n := 0
	for i := range s {
		if n == keep {
			return s[:i] + "***"
		}
		n++
	}
	// Never the whole value: one that is no longer than what may stay is masked in full.
	return "***"
}

func (f *field) bucket(v decision.Value) (decision.Value, string) {
	x, _ := v.Number()
	i := sort.Search(len(f.Edges), func(i int) bool { return f.Edges[i] > x })
	if i == 0 || math.IsNaN(x) {
		return decision.Value{}, f.belowNote
	}
	if f.Type == decision.Int {
		return decision.IntValue(int64(f.Edges[i-1])), f.note
	}
	return decision.DoubleValue(f.Edges[i-1]), f.note
}

// coerce gives the value its declared type: text is parsed, numbers are converted where
// nothing is lost. Text that says NaN or infinity is not a number here.
func coerce(v decision.Value, t decision.Type) (decision.Value, bool) {
	if v.Type() != decision.String || t == decision.String {
		return v.Convert(t)
	}
	switch s := v.Str(); t {
	case decision.Bool:
		b, err := strconv.ParseBool(s)
		return decision.BoolValue(b), err == nil
	case decision.Int:
		i, err := strconv.ParseInt(s, 10, 64)
		return decision.IntValue(i), err == nil
	case decision.Double:
		x, err := strconv.ParseFloat(s, 64)
		return decision.DoubleValue(x), err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
	}
	return decision.Value{}, false
}

// cutURL takes out of a URL what may hold credentials, and notes that it did.
func cutURL(v *decision.Value, note string, notes []string) []string {
	if v.Type() != decision.String {
		return notes
	}
	bare := bareURL(v.Str())
	if bare == v.Str() {
		return notes
	}
	*v = decision.StringValue(bare)
	return append(notes, note)
}

// deniedCache holds, for the schema that was seen last, the positions of attributes
// that may never be stored, or not whole.
type deniedCache struct{ last atomic.Pointer[deniedIn] }

type deniedIn struct {
	schema *decision.Schema
	at     []int
	notes  []string
	// urls are the positions of headers that hold a URL.
	urls     []int
	urlNotes []string
	// left are the positions of the attributes whose names may be stored, and stored is their
	// schema; nil where these are all.
	left   []int
	stored *decision.Schema
}

func (c *deniedCache) of(s *decision.Schema) *deniedIn {
	if d := c.last.Load(); d != nil && d.schema == s {
		return d
	}
	d := &deniedIn{schema: s}
	var scan secret.Scanner // a name's verdict must not depend on the request at hand
	var fields []decision.Field
	for i, f := range s.Fields() {
		name, secretName := hiddenName(f.Name, &scan)
		scan.Forget()
		switch {
		case secretName, secret.Attribute(f.Name):
			d.at, d.notes = append(d.at, i), append(d.notes, name+":"+string(Drop))
		case urlHeader(f.Name):
			d.urls, d.urlNotes = append(d.urls, i), append(d.urlNotes, f.Name+":query")
		}
		if !secretName {
			d.left, fields = append(d.left, i), append(fields, f)
		}
	}
	if len(fields) < s.Len() {
		d.stored, _ = decision.NewSchema(fields...) // a part of a valid schema is one
	}
	c.last.Store(d)
	return d
}

// strip removes from the values what no list may name, the queries of URLs, and what looks
// like a secret. Attributes whose names hold a secret leave the schema.
func (c *deniedCache) strip(a decision.Attrs, notes []string, scan *secret.Scanner) (decision.Attrs, []string) {
	s, vals := a.Schema, a.Values
	d := c.of(s)
	for i, at := range d.at {
		if at < len(vals) && !vals[at].IsNull() {
			vals[at] = decision.Value{}
			notes = append(notes, d.notes[i])
		}
	}
	for i, at := range d.urls {
		if at < len(vals) {
			notes = cutURL(&vals[at], d.urlNotes[i], notes)
		}
	}
	for i := range vals {
		if vals[i].Type() == decision.String {
			notes = cleanValue(&vals[i], s.Fields()[i].Name, notes, scan)
		}
	}
	if d.stored == nil {
		return a, notes
	}
	kept := 0
	for _, at := range d.left {
		if at < len(vals) {
			vals[kept] = vals[at]
			kept++
		}
	}
	return decision.Attrs{Schema: d.stored, Values: vals[:kept]}, notes
}
