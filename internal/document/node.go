package document

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/clefbench/clefbench/decision"
)

// coreTag reports whether a tag is one that YAML itself gives to plain values. Anything
// else was written by hand or by accident: `if: !has(x)` is a tag with an empty value.
func coreTag(tag string) bool {
	switch tag {
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq", "!!timestamp":
		return true
	}
	return false
}

// checkTree refuses what no clefbench file may hold anywhere: foreign tags, aliases and
// merges, repeated keys, keys that are not scalars, deep nesting.
func (f *File) checkTree(y *yaml.Node, depth int) {
	if depth > MaxDepth {
		f.Errorf(f.at(y), "nest less deep", "nested more than %d deep", MaxDepth)
		return
	}
	switch {
	case y.Kind == yaml.AliasNode:
		f.Errorf(f.at(y), "write the value out", "aliases are not supported")
		return
	case y.Anchor != "":
		f.Errorf(f.at(y), "write the value out", "anchors are not supported")
	case !coreTag(y.Tag) && strings.HasPrefix(y.Tag, "!"):
		f.Errorf(f.at(y), "quote the expression, as in '"+Short(y.Tag)+"'", "%s is read as a YAML tag", Short(y.Tag))
	}
	if y.Kind == yaml.MappingNode {
		f.checkKeys(y)
	}
	for _, c := range y.Content {
		f.checkTree(c, depth+1)
	}
}

func (f *File) checkKeys(y *yaml.Node) {
	seen := make(map[string]int, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		k := y.Content[i]
		if k.Kind != yaml.ScalarNode {
			f.Errorf(f.at(k), "quote the text: {{ ... }} without quotes is a map", "a key that is not text")
			continue
		}
		if line, dup := seen[k.Value]; dup {
			f.Errorf(f.at(k), "remove one of them", "field %q stands twice (first in line %d)", Short(k.Value), line)
		}
		seen[k.Value] = k.Line
	}
}

// Pos returns where the value stands.
func (n *Node) Pos() decision.Position { return n.file.at(n.y) }

// File returns the file that collects problems.
func (n *Node) File() *File { return n.file }

// Path returns the value's path in the file, as in rules[2].action.
func (n *Node) Path() string { return n.path }

// Errorf adds an error at the value.
func (n *Node) Errorf(hint, format string, args ...any) {
	n.file.Errorf(n.Pos(), hint, format, args...)
}

// IsMap, IsList, IsScalar and IsNull tell the kind of the value.
func (n *Node) IsMap() bool { return n.y.Kind == yaml.MappingNode }

// IsList reports whether the value is a list.
func (n *Node) IsList() bool { return n.y.Kind == yaml.SequenceNode }

// IsScalar reports whether the value is text, a number, a bool or null.
func (n *Node) IsScalar() bool { return n.y.Kind == yaml.ScalarNode }

// IsNull reports whether the value is null (or nothing was written).
func (n *Node) IsNull() bool { return n.IsScalar() && n.y.Tag == "!!null" }

func (n *Node) describe() string {
	switch {
	case n.IsMap():
		return "a map"
	case n.IsList():
		return "a list"
	case n.IsNull():
		return "nothing"
	case n.y.Tag == "!!str":
		return "text " + strconv.Quote(Short(n.y.Value))
	}
	return strings.TrimPrefix(n.y.Tag, "!!") + " " + Short(n.y.Value)
}

func (n *Node) want(what string) {
	name := n.path
	if name == "" {
		name = "the file"
	}
	n.Errorf(n.rewrite(what), "%s must be %s, got %s", name, what, n.describe())
}

// rewrite says how to write what is wanted.
func (n *Node) rewrite(what string) string {
	quoted := n.IsScalar() && n.y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
	switch {
	case n.IsNull():
		return "write the value, or remove the field"
	case what == "a map":
		return "write fields, as in name: value"
	case what == "a list":
		return "write a list, as in [a, b]"
	case what == "true or false" && n.IsScalar():
		return "write true or false, without quotes"
	case quoted && strings.Contains(what, "number"):
		return "write it without quotes"
	case strings.Contains(what, "whole number"):
		return "write a number in this range, without a point"
	case strings.Contains(what, "number") && n.IsScalar():
		return "write a number, as in 0.5"
	case n.IsMap() && strings.HasPrefix(n.path, "rules"):
		return "quote it, if it is a template: {{ ... }} without quotes is a map"
	}
	return "write one value here"
}

// Entry is one field of a map.
type Entry struct {
	Key    string
	KeyPos decision.Position
	Value  *Node
}

// Map is a map in file order.
type Map struct {
	node    *Node
	entries []Entry
	// meant are the fields that unknown ones were probably meant as.
	meant []string
}

// Map reads a map. Where known names are given, any other field is a problem with a
// did-you-mean. A value that is no map is a problem and gives an empty Map.
func (n *Node) Map(known ...string) *Map {
	m := &Map{node: n}
	if !n.IsMap() {
		n.want("a map")
		return m
	}
	for i := 0; i+1 < len(n.y.Content); i += 2 {
		k, v := n.y.Content[i], n.y.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			continue // reported by checkKeys
		}
		path := k.Value
		if n.path != "" {
			path = n.path + "." + k.Value
		}
		e := Entry{Key: k.Value, KeyPos: n.file.at(k), Value: &Node{n.file, v, path}}
		if len(known) > 0 && !contains(known, e.Key) {
			m.meant = append(m.meant, Closest(e.Key, known))
			n.file.Errorf(e.KeyPos, didYouMean(e.Key, known), "unknown field %q", Short(e.Key))
			continue
		}
		m.entries = append(m.entries, e)
	}
	return m
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func didYouMean(s string, known []string) string {
	if c := Closest(s, known); c != "" {
		return "did you mean " + strconv.Quote(c) + "?"
	}
	return "known fields: " + strings.Join(known, ", ")
}

// Entries returns the fields in file order.
func (m *Map) Entries() []Entry { return m.entries }

// Get returns a field, or nil when it is absent or null.
func (m *Map) Get(key string) *Node {
	for _, e := range m.entries {
		if e.Key == key {
			if e.Value.IsNull() {
				return nil
			}
			return e.Value
		}
	}
	return nil
}

// Need returns a field; an absent or null one is a problem, and nil. One that is only
// misspelled is a problem already.
func (m *Map) Need(key string) *Node {
	v := m.Get(key)
	if v == nil && m.node.IsMap() && !contains(m.meant, key) {
		m.node.Errorf("add "+key+": and its value", "missing field %q", key)
	}
	return v
}

// List reads a list; anything else is a problem and gives nil.
func (n *Node) List() []*Node {
	if !n.IsList() {
		n.want("a list")
		return nil
	}
	out := make([]*Node, len(n.y.Content))
	for i, c := range n.y.Content {
		out[i] = &Node{n.file, c, n.path + "[" + strconv.Itoa(i) + "]"}
	}
	return out
}

// Text reads text. A plain number or bool is taken as it is written (the version 1.10
// stays "1.10"); null, lists and maps are problems.
func (n *Node) Text() (string, bool) {
	if !n.IsScalar() || n.IsNull() {
		n.want("text")
		return "", false
	}
	return n.y.Value, true
}

// Literal reports whether the text is quoted or plain on one line, so that a column in
// the text is a column in the file, and returns the position of its first character.
// For a block scalar the column is unknown (0).
func (n *Node) Literal() decision.Position {
	p := n.Pos()
	switch {
	case n.y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		p.Column++
	case n.y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		p.Line++
		p.Column = 0
	}
	return p
}

// Float reads a finite number; text that looks like one is refused.
func (n *Node) Float() (float64, bool) {
	if n.IsScalar() && (n.y.Tag == "!!int" || n.y.Tag == "!!float") {
		f, err := strconv.ParseFloat(strings.ReplaceAll(n.y.Value, "_", ""), 64)
		if err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f, true
		}
	}
	n.want("a finite number")
	return 0, false
}

// Int reads a whole number within [lo, hi].
func (n *Node) Int(lo, hi int64) (int64, bool) {
	if n.IsScalar() && n.y.Tag == "!!int" {
		i, err := strconv.ParseInt(strings.ReplaceAll(n.y.Value, "_", ""), 0, 64)
		if err == nil && i >= lo && i <= hi {
			return i, true
		}
	}
	n.want("a whole number from " + strconv.FormatInt(lo, 10) + " to " + strconv.FormatInt(hi, 10))
	return 0, false
}

// Bool reads true or false.
func (n *Node) Bool() (value, ok bool) {
	if n.IsScalar() && n.y.Tag == "!!bool" {
		switch strings.ToLower(n.y.Value) {
		case "true":
			return true, true
		case "false":
			return false, true
		}
	}
	n.want("true or false")
	return false, false
}

// Value reads a scalar as an attribute value: bool, int, double or string; null, lists
// and maps are problems.
func (n *Node) Value() (decision.Value, bool) {
	if n.IsScalar() {
		switch n.y.Tag {
		case "!!str", "!!timestamp":
			return decision.StringValue(n.y.Value), true
		case "!!bool":
			b, ok := n.Bool()
			return decision.BoolValue(b), ok
		case "!!int":
			i, ok := n.Int(math.MinInt64, math.MaxInt64)
			return decision.IntValue(i), ok
		case "!!float":
			f, ok := n.Float()
			return decision.DoubleValue(f), ok
		}
	}
	n.want("text, a number or true/false")
	return decision.Value{}, false
}

// Texts reads a list of texts.
func (n *Node) Texts() []string {
	var out []string
	for _, c := range n.List() {
		if s, ok := c.Text(); ok {
			out = append(out, s)
		}
	}
	return out
}

// SomeTexts is [Node.Texts] for a list that may not be empty; hint says what to do
// about one that is.
func (n *Node) SomeTexts(hint string) []string {
	if n.IsList() && len(n.y.Content) == 0 {
		n.Errorf(hint, "%s is empty", n.path)
	}
	return n.Texts()
}

// Label reads the label of an action: text without blanks around it, at most 200 bytes.
func (n *Node) Label() (string, bool) {
	s, ok := n.Text()
	switch {
	case !ok:
		return "", false
	case strings.TrimSpace(s) != s || s == "":
		n.Errorf("", "%s must be text without blanks around it", n.path)
	case len(s) > 200:
		n.Errorf("", "%s has %d bytes, the limit is 200", n.path, len(s))
	default:
		return s, true
	}
	return "", false
}

// Object reads a map as the text of a JSON object, with its keys sorted.
func (n *Node) Object() (string, bool) {
	if !n.IsMap() {
		n.want("a map")
		return "", false
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // what a file says stays readable in an answer
	before := n.file.Problems.Errors()
	if err := enc.Encode(n.JSON()); err != nil {
		n.Errorf("", "%s: %v", n.path, err)
	}
	return strings.TrimSuffix(b.String(), "\n"), n.file.Problems.Errors() == before
}

// TrailingComment returns the comment that follows plain text on its line, or "". In
// text that may hold a # itself it was probably meant as part of the text.
func (n *Node) TrailingComment() string {
	if !n.IsScalar() || n.y.Style&^yaml.TaggedStyle != 0 {
		return ""
	}
	return n.y.LineComment
}

// JSON returns the value as a Go value for encoding/json: map[string]any, []any,
// string, float64, int64, bool or nil. Maps lose their order; encoding/json sorts them.
func (n *Node) JSON() any {
	switch {
	case n.IsMap():
		m := map[string]any{}
		for _, e := range n.Map().Entries() {
			m[e.Key] = e.Value.JSON()
		}
		return m
	case n.IsList():
		out := []any{}
		for _, c := range n.List() {
			out = append(out, c.JSON())
		}
		return out
	case n.IsNull():
		return nil
	}
	v, _ := n.Value()
	return v.Any()
}
