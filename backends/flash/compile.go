package flash

import (
	"crypto/sha256"
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/attribute"
	"github.com/clefbench/clefbench/internal/document"
)

// CompileMatrix compiles matrix JSON to the bytes of a .cfb file. name stands in
// positions, and its last element in the file. The error is a [document.Problems] with
// everything that is wrong. The same data and base name give the same bytes.
func CompileMatrix(name string, data []byte) ([]byte, error) {
	cfb, f := compile(name, data, nil)
	if err := f.Err(); err != nil {
		return nil, err
	}
	return cfb, nil
}

// Check returns all findings of a matrix file, warnings included, ordered by
// position. Warnings are gaps between ranges, values that no attribute can give, and
// actions that no cell names. Schema holds the attributes of the data set at hand and may
// be nil; an attribute that it does not record is a warning.
//
// It is stricter than [CompileMatrix], which knows no data set: a dimension must read a
// built-in name or one that the data set records, and ranges a number.
func Check(name string, data []byte, schema *decision.Schema) document.Problems {
	_, f := compile(name, data, attribute.NewClosedScope(schema))
	f.Problems.Sort()
	return f.Problems
}

// compile also checks the attributes' names where it is given a scope.
func compile(name string, data []byte, scope *attribute.Scope) ([]byte, *document.File) {
	f, root, err := document.Parse(name, data)
	if err != nil {
		return nil, f
	}
	c := &content{source: sourceName(name), digest: sha256.Sum256(data), fallback: noDigit}
	r := &reader{f: f, c: c, scope: scope, ids: map[int64]uint16{}}
	r.root(root)
	if f.Problems.Errors() > 0 {
		return nil, f
	}
	r.unused()
	if n := c.nameBytes(); n > maxNames {
		root.Errorf("shorten the values' names", "the names of all %d cells take %d bytes, the limit is %d", len(c.cells), n, maxNames)
		return nil, f
	}
	cfb := c.encode()
	if len(cfb) > MaxSize {
		root.Errorf("use fewer values or dimensions: a cell takes 1 byte, a row of the last dimension 1 or more",
			"the table takes %d bytes (%d cells in %d rows), the limit is %d", len(cfb), len(c.cells), c.rows(), MaxSize)
		return nil, f
	}
	return cfb, f
}

// sourceName is the file's name as the table keeps it: without directories, which would
// make the bytes depend on the machine.
func sourceName(path string) string {
	name := strings.ToValidUTF8(filepath.Base(path), "?")
	return strings.ToValidUTF8(name[:min(len(name), maxText)], "")
}

// reader walks a matrix file.
type reader struct {
	f *document.File
	c *content
	// scope knows the attributes' names; nil: they are not checked.
	scope *attribute.Scope
	// ids gives the index of an action id; nodes are the actions' places, used tells
	// which of them a cell names.
	ids   map[int64]uint16
	nodes []*document.Node
	used  []bool
}

func (r *reader) root(n *document.Node) {
	m := n.Map("version", "scenarios", "dimensions", "actions", "matrix", "fallback")
	if v := m.Get("version"); v != nil {
		r.c.version = r.text(v)
	}
	if v := m.Get("scenarios"); v != nil {
		r.c.scenarios = r.distinct(v, "scenario")
	}
	if v := m.Need("dimensions"); v != nil {
		r.dimensions(v)
	}
	if v := m.Need("actions"); v != nil {
		r.actions(v)
	}
	// Cells are read only against sound dimensions: a wrong one would make each row wrong.
	if v := m.Need("matrix"); v != nil && r.f.Problems.Errors() == 0 {
		r.matrix(v, 0)
	}
	if v := m.Get("fallback"); v != nil {
		r.c.fallback = r.action(v)
		r.c.fallbackLine = v.Pos().Line
	}
}

// text reads a text of bounded size, which may not be empty.
func (r *reader) text(n *document.Node) string {
	s, ok := n.Text()
	switch {
	case !ok:
	case s == "":
		n.Errorf("", "%s must not be empty", n.Path())
	case len(s) > maxText:
		n.Errorf("", "%s has %d bytes, the limit is %d", n.Path(), len(s), maxText)
	case !utf8.ValidString(s):
		n.Errorf("", "%s is not valid UTF-8", n.Path())
	}
	return s
}

// distinct reads a list of texts, each of which may stand once.
func (r *reader) distinct(n *document.Node, what string) []string {
	var out []string
	seen := map[string]bool{}
	list := n.List()
	if len(list) > math.MaxUint16-1 {
		n.Errorf("", "%s has %d entries, the limit is %d", n.Path(), len(list), math.MaxUint16-1)
		return nil
	}
	for _, x := range list {
		s := r.text(x)
		if seen[s] {
			x.Errorf("", "%s %q stands twice", what, s)
		}
		seen[s] = true
		out = append(out, s)
	}
	if len(out) == 0 && n.IsList() {
		n.Errorf("", "%s is empty", n.Path())
	}
	return out
}

func (r *reader) actions(n *document.Node) {
	list := n.List()
	if len(list) == 0 && n.IsList() {
		n.Errorf("", "actions is empty")
	}
	if len(list) > math.MaxUint16-1 {
		n.Errorf("", "%d actions, the limit is %d", len(list), math.MaxUint16-1)
		return
	}
	for _, x := range list {
		r.oneAction(x)
	}
	r.used = make([]bool, len(r.c.actions))
}

// oneAction reads an action: its label is name, else type, and all but id and the label
// are parameters.
func (r *reader) oneAction(n *document.Node) {
	m := n.Map()
	if !n.IsMap() {
		return
	}
	a := action{}
	if v := m.Need("id"); v != nil {
		a.id, _ = v.Int(math.MinInt32, math.MaxInt32)
		if first, dup := r.ids[a.id]; dup {
			v.Errorf("", "action id %d stands twice (first in line %d)", a.id, r.nodes[first].Pos().Line)
		}
		r.ids[a.id] = uint16(len(r.c.actions))
	}
	key := "name"
	if m.Get(key) == nil {
		key = "type"
	}
	if v := m.Get(key); v != nil {
		a.label = r.text(v)
		if strings.TrimSpace(a.label) != a.label {
			v.Errorf("", "an action's label must be text without blanks around it")
		}
	} else {
		n.Errorf(`write "type" or "name"`, "%s has neither name nor type, so no label", n.Path())
	}
	a.params = params(n, m, key)
	r.c.actions = append(r.c.actions, a)
	r.nodes = append(r.nodes, n)
}

// params writes the other fields as JSON with sorted keys, or "" when there are none.
func params(n *document.Node, m *document.Map, label string) string {
	fields := map[string]any{}
	for _, e := range m.Entries() {
		if e.Key != "id" && e.Key != label {
			fields[e.Key] = e.Value.JSON()
		}
	}
	if len(fields) == 0 {
		return ""
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fields); err != nil {
		n.Errorf("", "parameters: %v", err)
	}
	s := strings.TrimSuffix(b.String(), "\n")
	if len(s) > maxText {
		n.Errorf("", "the parameters take %d bytes, the limit is %d", len(s), maxText)
	}
	return s
}

// action reads an action's id and returns its index.
func (r *reader) action(n *document.Node) uint16 {
	id, ok := n.Int(math.MinInt32, math.MaxInt32)
	if !ok {
		return noDigit
	}
	i, ok := r.ids[id]
	if !ok {
		n.Errorf("the ids are those under actions", "%s: no action has the id %d", n.Path(), id)
		return noDigit
	}
	if int(i) < len(r.used) {
		r.used[i] = true
	}
	return i
}

// matrix reads the nested lists from dimension dim on.
func (r *reader) matrix(n *document.Node, dim int) {
	if dim == len(r.c.dims) {
		r.c.cells = append(r.c.cells, r.action(n))
		return
	}
	d := &r.c.dims[dim]
	list := n.List()
	if !n.IsList() {
		return
	}
	if len(list) != len(d.values) {
		n.Errorf("give each list as many entries as its dimension has values", "%s has %d entries, dimension %q has %d values: %s", n.Path(), len(list), d.name, len(d.values), strings.Join(first(d.values, 8), ", "))
		return
	}
	if dim == len(r.c.dims)-1 {
		r.c.lines = append(r.c.lines, n.Pos().Line)
	}
	for _, x := range list {
		r.matrix(x, dim+1)
	}
}

// first shortens a list for a message.
func first(list []string, n int) []string {
	if len(list) <= n {
		return list
	}
	return append(append([]string(nil), list[:n]...), "...")
}

func (r *reader) unused() {
	for i, used := range r.used {
		if !used {
			r.f.Warnf(r.nodes[i].Pos(), "", "no cell names the action %d (%s)", r.c.actions[i].id, r.c.actions[i].label)
		}
	}
}
