package model

import (
	"crypto/sha256"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/attribute"
	"github.com/clefbench/clefbench/internal/document"
)

// Limits of a model file. The numbers of classes and actions are bounded so that Decide
// keeps its sums on the stack.
const (
	maxClasses = 64
	maxActions = 64
	maxColumns = 1 << 16
)

// Compile reads model.json. name stands in positions and as the backend's name. The
// error is a [document.Problems] with everything that is wrong. A model of trees refers to
// a file beside it: read that with [CompileIn].
func Compile(name string, data []byte) (*Model, error) { return CompileIn(nil, name, data, nil) }

// CompileIn is [Compile] for a model whose tree file is in dir, the directory of the model
// file. Schema holds the attributes of the data set at hand and may be nil; with it, a
// tree model that reads a name which is none is refused. (A logistic model abstains then,
// trees would go their default ways.)
func CompileIn(dir fs.FS, name string, data []byte, schema *decision.Schema) (*Model, error) {
	r := &reader{dir: dir, m: &Model{file: name}}
	if schema != nil {
		r.treeScope = attribute.NewClosedScope(schema)
	}
	r.read(name, data)
	if err := r.f.Err(); err != nil {
		return nil, err
	}
	r.m.finish(name, sha256.Sum256(append(slices.Clip(data), r.treeData...)))
	return r.m, nil
}

// read compiles the file as far as possible.
func (r *reader) read(name string, data []byte) {
	f, root, err := document.Parse(name, data)
	if r.f = f; err == nil {
		r.root(root)
	}
}

type reader struct {
	f *document.File
	m *Model
	// scope knows the attributes' names; nil: they are not checked. treeScope is the same for
	// a model of trees.
	scope, treeScope *attribute.Scope
	// dir holds the tree file, which is then treeData; nil: there is none.
	dir      fs.FS
	treeData []byte
	// none is the list of features when it is empty, until that is reported.
	none *document.Node
}

func (r *reader) root(n *document.Node) {
	kind := r.modelKind(n)
	fields := []string{"model", "name", "version", "scenarios", "features", "classes", "otherwise", "utility"}
	if kind != logistic {
		fields = []string{"model", "name", "version", "scenarios", "file", "sha256", "feature_names", "features", "classes", "utility"}
	}
	top := n.Map(fields...)
	top.Need("model")
	r.m.rule, r.m.engine = kind, "logistic/1"
	if v := top.Get("name"); v != nil {
		r.m.rule = text(v)
	}
	if v := top.Get("version"); v != nil {
		r.m.version = text(v)
	}
	if v := top.Get("scenarios"); v != nil {
		r.m.scenarios = v.SomeTexts("leave the field out to decide any scenario")
	}
	if kind != logistic {
		r.trees(kind, top)
	} else {
		r.logistic(top)
	}
	if v := top.Get("utility"); v != nil {
		r.utility(v)
	} else {
		r.m.actions, r.m.places = r.m.classNames, r.m.classPlaces
	}
}

// logistic, lightgbm and xgboost are the kinds of models.
const (
	logistic = "logistic"
	lightgbm = "lightgbm"
	xgboost  = "xgboost"
)

// modelKind tells which fields a file has; an unknown one is read as logistic.
func (r *reader) modelKind(n *document.Node) string {
	if !n.IsMap() {
		return logistic
	}
	v := n.Map().Get("model")
	if v == nil {
		return logistic
	}
	s, ok := v.Text()
	if kinds := []string{logistic, lightgbm, xgboost}; ok && !slices.Contains(kinds, s) {
		v.Errorf(attribute.Suggest(s, kinds), "unknown model %q", document.Short(s))
		return logistic
	}
	return s
}

func (r *reader) logistic(top *document.Map) {
	if v := top.Need("features"); v != nil {
		r.features(v)
		if v.IsList() && r.m.columns == 0 {
			r.none = v
		}
	}
	if v := top.Need("classes"); v != nil {
		r.classes(v, top.Get("otherwise"))
	}
}

func text(n *document.Node) string {
	s, ok := n.Text()
	if ok && s == "" {
		n.Errorf("", "%s must not be empty", n.Path())
	}
	return s
}

func (r *reader) features(n *document.Node) {
	for _, x := range n.List() {
		f := r.feature(x)
		f.first = r.m.columns
		r.m.columns += f.width()
		if r.m.columns > maxColumns {
			x.Errorf("", "more than %d columns", maxColumns)
			return
		}
		r.m.features = append(r.m.features, f)
	}
}

func (r *reader) feature(n *document.Node) feature {
	f := feature{scale: 1}
	m := n.Map("name", "transform", "mean", "scale", "missing", "contains", "ignore_case", "equals", "bins", "present")
	if !n.IsMap() {
		return f
	}
	if v := m.Need("name"); v != nil {
		f.name = text(v)
	}
	f.kind = r.kind(m)
	switch f.kind {
	case numeric:
		r.numeric(m, &f)
	case contains:
		r.contains(m, &f)
	case equals:
		f.equal, _ = m.Get("equals").Value()
	case bins:
		r.bins(m.Get("bins"), &f)
	case present:
		if b, ok := m.Get("present").Bool(); ok && !b {
			m.Get("present").Errorf("write true", "%s can only be true", m.Get("present").Path())
		}
	}
	if v := m.Get("missing"); v != nil {
		r.missing(v, &f)
	}
	if v := m.Get("name"); v != nil && r.scope != nil && f.name != "" {
		r.attribute(v, m, &f)
	}
	return f
}

// kind tells the sort of feature by the fields that it has, and refuses a field that
// the sort does not know.
func (r *reader) kind(m *document.Map) featureKind {
	sorts := []featureSort{
		{"contains", contains, []string{"ignore_case", "missing"}},
		{"equals", equals, []string{"missing"}},
		{"bins", bins, []string{"missing"}},
		{"present", present, nil},
		{"name", numeric, []string{"transform", "mean", "scale", "missing"}},
	}
	for _, s := range sorts {
		if m.Get(s.key) == nil {
			continue
		}
		for _, e := range m.Entries() {
			telling := slices.ContainsFunc(sorts, func(x featureSort) bool { return x.key == e.Key })
			switch {
			case e.Key == "name" || e.Key == s.key || slices.Contains(s.fields, e.Key):
			case telling && e.Value.IsNull():
				e.Value.Errorf("write the value, or remove the field", "%s has no value", e.Value.Path())
			default:
				r.f.Errorf(e.KeyPos, "", "%q does not go with %q", e.Key, s.key)
			}
		}
		return s.kind
	}
	return numeric
}

// featureSort is a sort of feature: the field that tells it, and the fields that go with
// it.
type featureSort struct {
	key    string
	kind   featureKind
	fields []string
}

func (r *reader) numeric(m *document.Map, f *feature) {
	if v := m.Get("transform"); v != nil {
		switch s, ok := v.Text(); {
		case ok && s == "log1p":
			f.log = true
		case ok && s != "identity":
			v.Errorf(`write "identity" or "log1p"`, "unknown transform %q", s)
		}
	}
	if v := m.Get("mean"); v != nil {
		f.mean, _ = v.Float()
	}
	if v := m.Get("scale"); v != nil {
		if x, ok := v.Float(); ok && x <= 0 {
			v.Errorf("leave out a feature that is constant", "%s must be above 0", v.Path())
		} else if ok {
			f.scale = x
		}
	}
}

func (r *reader) contains(m *document.Map, f *feature) {
	f.text = text(m.Get("contains"))
	if v := m.Get("ignore_case"); v != nil {
		f.fold, _ = v.Bool()
	}
	if f.fold {
		b := []byte(f.text)
		for i := range b {
			b[i] = toLower(b[i])
		}
		f.text = string(b)
	}
}

func (r *reader) bins(n *document.Node, f *feature) {
	list := n.List()
	if n.IsList() && len(list) == 0 {
		n.Errorf("", "%s is empty", n.Path())
	}
	for _, x := range list {
		e, ok := x.Float()
		if ok && len(f.edges) > 0 && e <= f.edges[len(f.edges)-1] {
			x.Errorf("", "%s must be above the edge before it", x.Path())
		}
		f.edges = append(f.edges, e)
	}
}

// missing reads what a missing attribute counts as; the value must be one that the
// feature itself can take.
func (r *reader) missing(n *document.Node, f *feature) {
	x, ok := n.Float()
	if !ok {
		return
	}
	f.missing = decision.Some(x)
	switch f.kind {
	case contains, equals:
		if x != 0 && x != 1 {
			n.Errorf("", "%s must be 0 or 1 here", n.Path())
		}
	default:
		if _, _, ok := f.scaled(x); !ok {
			n.Errorf("it is a raw value, before the transform", "%s: the transform of %v is no number", n.Path(), x)
		}
	}
}

func (r *reader) classes(n, otherwise *document.Node) {
	list := n.List()
	if !n.IsList() {
		return
	}
	for _, x := range list {
		r.class(x)
	}
	m := r.m
	if otherwise != nil {
		if len(list) != 1 {
			otherwise.Errorf("", "otherwise goes with exactly one class, there are %d", len(list))
		}
		r.name(otherwise)
		m.bias = append(m.bias, 0)
		m.rows = append(m.rows, make([]float64, m.columns))
	} else if len(list) < 2 {
		n.Errorf(`with one class, name the other answer in "otherwise"`, "%d classes, want at least 2", len(list))
	}
	if len(m.classNames) > maxClasses {
		n.Errorf("", "%d classes, the limit is %d", len(m.classNames), maxClasses)
	}
}

// name adds a class under the action that n names.
func (r *reader) name(n *document.Node) {
	s := text(n)
	if slices.Contains(r.m.classNames, s) {
		n.Errorf("", "class %q stands twice", s)
	}
	r.m.classNames = append(r.m.classNames, s)
	r.m.classPlaces = append(r.m.classPlaces, n.Pos())
}

func (r *reader) class(n *document.Node) {
	m := n.Map("action", "bias", "weights")
	if !n.IsMap() {
		return
	}
	if v := m.Need("action"); v != nil {
		r.name(v)
	}
	bias := 0.0
	if v := m.Need("bias"); v != nil {
		bias, _ = v.Float()
	}
	var weights []float64
	if v := m.Need("weights"); v != nil {
		for _, x := range v.List() {
			w, _ := x.Float()
			weights = append(weights, w)
		}
		if v.IsList() && len(weights) != r.m.columns {
			r.mismatch(v, len(weights))
		}
	}
	r.m.bias = append(r.m.bias, bias)
	r.m.rows = append(r.m.rows, weights)
}

// mismatch reports a wrong number of weights. Weights without any feature are one mistake
// of the features, not one of each class.
func (r *reader) mismatch(n *document.Node, weights int) {
	switch {
	case r.m.columns > 0:
		n.Errorf("a feature has one weight, bins have one more than edges", "%s has %d weights, the features have %d columns", n.Path(), weights, r.m.columns)
	case r.none != nil:
		r.none.Errorf("name the attributes that the weights are for", "features is empty")
		r.none = nil
	}
}

// utility reads truth -> action -> utility: a row for each class, the same actions in
// each row.
func (r *reader) utility(n *document.Node) {
	m := n.Map()
	r.m.utility = make([][]float64, len(r.m.classNames))
	for _, row := range m.Entries() {
		k := slices.Index(r.m.classNames, row.Key)
		if k < 0 {
			hint := "the classes are " + strings.Join(r.m.classNames, ", ")
			r.f.Errorf(row.KeyPos, hint, "utility: no class is called %q", row.Key)
			continue
		}
		cells := row.Value.Map().Entries()
		if r.m.actions == nil {
			for _, c := range cells {
				if c.Key == "" {
					r.f.Errorf(c.KeyPos, "", "an action without a name")
				}
				r.m.actions, r.m.places = append(r.m.actions, c.Key), append(r.m.places, c.KeyPos)
			}
		}
		r.m.utility[k] = r.utilityRow(row, cells)
	}
	for k, row := range r.m.utility {
		if row == nil && n.IsMap() {
			n.Errorf("", "utility has no row for the class %q", r.m.classNames[k])
		}
	}
	if len(r.m.actions) > maxActions {
		n.Errorf("", "%d actions, the limit is %d", len(r.m.actions), maxActions)
	}
}

func (r *reader) utilityRow(row document.Entry, cells []document.Entry) []float64 {
	out := make([]float64, len(r.m.actions))
	for i := range out {
		out[i] = math.NaN()
	}
	for _, c := range cells {
		u, _ := c.Value.Float()
		if i := slices.Index(r.m.actions, c.Key); i >= 0 {
			out[i] = u
		} else {
			r.f.Errorf(c.KeyPos, "each row has the actions of the first row", "%s: the first row has no action %q", row.Value.Path(), c.Key)
		}
	}
	for i, u := range out {
		if math.IsNaN(u) {
			row.Value.Errorf("", "%s has no utility for the action %q", row.Value.Path(), r.m.actions[i])
		}
	}
	if len(out) == 0 && row.Value.IsMap() {
		row.Value.Errorf("", "%s is empty", row.Value.Path())
	}
	return out
}
