package expr

import (
	"cmp"
	"encoding/json"
	"math"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

// Action is what a rule answers: a label, and parameters as JSON with its keys sorted,
// rendered at load but for the templates inside.
type Action struct {
	Label string
	Pos   decision.Position
	// parts are JSON text; a part with attr is a value inside a JSON string, one with tags
	// the place of the tags.
	parts  []segment
	static string
	attrs  []Attr
	bare   []Bare
}

// Bare is a parameter's text that is nothing but references: it renders as empty text
// when what they name is.
type Bare struct {
	Pos   decision.Position
	Attrs []Attr
}

// ActionOptions say what an action may hold.
type ActionOptions struct {
	// Data is the raw text of the file, for exact positions.
	Data []byte
	// Fixed refuses templates: a fallback must always be possible.
	Fixed bool
	// Tags keeps the parameter "tags" free for [Action.Tagged].
	Tags bool
}

// ReadAction reads an action: a label, or a map whose name (else type) is the label and
// whose other fields are parameters. params, which may be nil, are further parameters.
// What is wrong goes to the file's problems, and the result is nil.
func ReadAction(n, params *document.Node, scope *Scope, o ActionOptions) *Action {
	f := n.File()
	before := f.Problems.Errors()
	w := &actionReader{scope: scope, o: o, fields: map[string]*document.Node{}}
	a := &Action{Pos: n.Pos()}
	switch {
	case n.IsScalar() && !n.IsNull():
		a.Label = label(n)
	case n.IsMap():
		a.Label = w.labelled(n)
	default:
		n.Errorf("write a label, or a map with type or name", "%s must be a label or a map", cmp.Or(n.Path(), "the action"))
	}
	if params != nil {
		w.collect(params, "")
	}
	w.object()
	if f.Problems.Errors() > before {
		return nil
	}
	a.parts, a.attrs, a.bare = w.out, w.attrs, w.bare
	if len(a.attrs) == 0 {
		a.static, _ = a.Tagged(nil, nil)
	}
	return a
}

// label reads an action's label: an identifier, never a template.
func label(n *document.Node) string {
	s, ok := n.Text()
	switch {
	case !ok:
		return ""
	case strings.TrimSpace(s) != s || s == "":
		n.Errorf("write it as the candidates have it", "an action's label must be text without blanks around it")
	case strings.Contains(s, "{{"):
		n.Errorf("use one rule for each action", "an action's label cannot be a template")
	case len(s) > 200:
		n.Errorf("put the rest into a parameter", "an action's label has %d bytes, the limit is 200", len(s))
	}
	return s
}

// Templated reports whether the parameters depend on the request.
func (a *Action) Templated() bool { return len(a.attrs) > 0 }

// Reads returns the attributes that the templates name.
func (a *Action) Reads() []Attr { return a.attrs }

// Bare returns the texts that are nothing but references.
func (a *Action) Bare() []Bare { return a.bare }

// Params returns the parameters as a JSON object, or "" when there are none. It is
// false when a template names an attribute that the row lacks.
func (a *Action) Params(row *Row) (string, bool) {
	if len(a.attrs) == 0 {
		return a.static, true
	}
	return a.Tagged(row, nil)
}

// Tagged is Params with one more parameter, "tags", a list of texts; it is left out when
// there are none. The action must have been read with ActionOptions.Tags.
func (a *Action) Tagged(row *Row, tags []string) (string, bool) {
	var buf [256]byte
	out := buf[:0]
	for i := range a.parts {
		p := &a.parts[i]
		switch {
		case p.tags != noTags:
			out = p.tags.append(out, tags)
		case p.attr == nil:
			out = append(out, p.text...)
		default:
			v, ok := p.value(row)
			if !ok {
				return "", false
			}
			out = appendEscaped(out, v)
		}
	}
	return string(out), true
}

// tagPlace is what stands around the tags in the object of parameters.
type tagPlace uint8

const (
	noTags tagPlace = iota
	tagsAlone
	tagsBefore // another parameter
	tagsLast
)

func (p tagPlace) append(out []byte, tags []string) []byte {
	if len(tags) == 0 {
		return out
	}
	switch p {
	case tagsAlone:
		out = append(out, '{')
	case tagsLast:
		out = append(out, ',')
	}
	out = append(out, `"tags":[`...)
	for i, t := range tags {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), []byte(appendEscaped(nil, t))...), '"')
	}
	out = append(out, ']')
	switch p {
	case tagsAlone:
		out = append(out, '}')
	case tagsBefore:
		out = append(out, ',')
	}
	return out
}

// Missing returns the names that Params lacks for a row.
func (a *Action) Missing(row *Row) []string {
	var out []string
	for _, p := range a.parts {
		if p.attr == nil {
			continue
		}
		if _, ok := p.value(row); !ok {
			out = append(out, p.attr.Name)
		}
	}
	return out
}

// actionReader collects the fields of an action and writes them as segments of JSON.
type actionReader struct {
	scope  *Scope
	o      ActionOptions
	keys   []string
	fields map[string]*document.Node
	out    []segment
	attrs  []Attr
	bare   []Bare
}

// labelled reads the label of a map, and collects its other fields.
func (w *actionReader) labelled(n *document.Node) string {
	m := n.Map()
	for _, key := range []string{"name", "type"} {
		if v := m.Get(key); v != nil {
			w.collect(n, key)
			return label(v)
		}
	}
	n.Errorf("write type or name", "%s has neither name nor type, so no label", cmp.Or(n.Path(), "the action"))
	return ""
}

// collect takes the fields of a map as parameters, but for one.
func (w *actionReader) collect(n *document.Node, except string) {
	for _, e := range n.Map().Entries() {
		if e.Key == except {
			continue
		}
		if w.fields[e.Key] != nil {
			n.File().Errorf(e.KeyPos, "", "parameter %q stands twice", e.Key)
			continue
		}
		if e.Key == "tags" && w.o.Tags {
			n.File().Errorf(e.KeyPos, "give the parameter another name", `the parameter "tags" holds the tags of the file's rules that are not terminal`)
			continue
		}
		w.known(e)
		w.keys = append(w.keys, e.Key)
		w.fields[e.Key] = e.Value
	}
}

// known checks the parameters that have a meaning of their own, and warns of names that
// are nearly one of them; any other name is free.
func (w *actionReader) known(e document.Entry) {
	names := []string{"name", "type", "key", "upstream", "ttl_seconds", "timeout_ms", "cache_ttl", "response"}
	switch e.Key {
	case "ttl_seconds", "timeout_ms":
		e.Value.Int(0, math.MaxInt32)
	default:
		if c := document.Closest(e.Key, names); c != "" && c != e.Key && len(e.Key) > 3 {
			e.Value.File().Warnf(e.KeyPos, "did you mean "+strconv.Quote(c)+"?", "parameter %q is not one of the known ones", e.Key)
		}
	}
}

// object writes the collected fields, with a place for the tags where there may be some.
func (w *actionReader) object() {
	if len(w.keys) == 0 {
		if w.o.Tags {
			w.out = append(w.out, segment{tags: tagsAlone})
		}
		return
	}
	sort.Strings(w.keys)
	w.raw("{")
	tags := w.o.Tags
	for i, k := range w.keys {
		if tags && k > "tags" {
			if i > 0 {
				w.raw(",")
			}
			w.out = append(w.out, segment{tags: tagsBefore})
			tags = false
		} else if i > 0 {
			w.raw(",")
		}
		w.key(k, w.fields[k])
		w.value(w.fields[k])
	}
	if tags {
		w.out = append(w.out, segment{tags: tagsLast})
	}
	w.raw("}")
}

func (w *actionReader) key(k string, n *document.Node) {
	if strings.Contains(k, "{{") {
		n.Errorf("put the template into the value", "a parameter's name cannot be a template")
	}
	w.raw(`"` + string(appendEscaped(nil, k)) + `":`)
}

func (w *actionReader) value(n *document.Node) {
	switch {
	case n.IsMap():
		w.nested(n)
	case n.IsList():
		w.raw("[")
		for i, c := range n.List() {
			if i > 0 {
				w.raw(",")
			}
			w.value(c)
		}
		w.raw("]")
	case n.IsNull():
		w.raw("null")
	default:
		w.scalar(n)
	}
}

func (w *actionReader) nested(n *document.Node) {
	entries := append([]document.Entry(nil), n.Map().Entries()...)
	sort.Slice(entries, func(i, j int) bool { return entries[i].Key < entries[j].Key })
	w.raw("{")
	for i, e := range entries {
		if i > 0 {
			w.raw(",")
		}
		w.key(e.Key, e.Value)
		w.value(e.Value)
	}
	w.raw("}")
}

func (w *actionReader) scalar(n *document.Node) {
	v, ok := n.Value()
	if !ok {
		return
	}
	if v.Type() == decision.String {
		w.text(n, v.Str())
		return
	}
	b, err := json.Marshal(v.Any())
	if err != nil {
		n.Errorf("", "%s: %v", n.Path(), err)
		return
	}
	w.raw(string(b))
}

// text writes a JSON string, which may hold templates.
func (w *actionReader) text(n *document.Node, s string) {
	segments, bad := parseTemplate(s, w.scope)
	if bad != nil {
		n.File().Errorf(document.Locate(w.o.Data, n, s, bad.offset), bad.hint, "%s", bad.message)
		return
	}
	w.raw(`"`)
	bare := Bare{Pos: n.Pos()}
	for _, seg := range segments {
		if seg.attr == nil {
			bare.Pos = decision.Position{}
			w.raw(string(appendEscaped(nil, seg.text)))
			continue
		}
		if w.o.Fixed {
			n.Errorf("write a fixed value", "a fallback cannot hold a template: it must always be possible")
			return
		}
		w.scope.WarnUnrecorded(n.File(), n.Pos(), *seg.attr)
		w.out = append(w.out, seg)
		w.attrs = append(w.attrs, *seg.attr)
		bare.Attrs = append(bare.Attrs, *seg.attr)
	}
	if len(bare.Attrs) > 0 && bare.Pos != (decision.Position{}) {
		w.bare = append(w.bare, bare)
	}
	w.raw(`"`)
}

// raw appends JSON text, joined to the text before it.
func (w *actionReader) raw(s string) {
	if n := len(w.out); n > 0 && w.out[n-1].attr == nil && w.out[n-1].tags == noTags {
		w.out[n-1].text += s
		return
	}
	w.out = append(w.out, segment{text: s})
}

// appendEscaped appends the inside of a JSON string. Bytes that are no UTF-8 become
// U+FFFD, as encoding/json has it; unlike there, <, > and & stay as they are.
func appendEscaped(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r < 0x20 || r == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		case r == '\u2028' || r == '\u2029':
			dst = append(append(dst, `\u`...), strconv.FormatInt(int64(r), 16)...)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}
