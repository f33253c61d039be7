package model

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/attribute"
	"github.com/clefbench/clefbench/internal/document"
)

// trees reads what a model of trees has beside name and version: its file, which class is
// which, and which attribute a feature is.
func (r *reader) trees(kind string, top *document.Map) {
	if v := top.Need("classes"); v != nil {
		r.treeClasses(v)
	}
	file := top.Need("file")
	if file == nil {
		return
	}
	e := r.ensemble(kind, file, top)
	if e == nil {
		return
	}
	f, err := plant(e)
	if err != nil {
		file.Errorf("", "%s: %v", r.m.trees, err)
		return
	}
	r.m.forest, r.m.engine = f, e.engine
	classes := max(2, e.groups)
	r.m.bias = make([]float64, classes)
	if v := top.Get("classes"); v != nil && v.IsList() && len(r.m.classNames) != classes {
		v.Errorf("name the action of label 0 first", "%d classes, the trees have %d", len(r.m.classNames), classes)
	}
	r.inputs(e, top.Get("features"), file)
}

func (r *reader) treeClasses(n *document.Node) {
	for _, x := range n.List() {
		r.name(x)
	}
	if len(r.m.classNames) > maxClasses {
		n.Errorf("", "%d classes, the limit is %d", len(r.m.classNames), maxClasses)
	}
}

// ensemble reads the tree file; nil when that failed.
func (r *reader) ensemble(kind string, file *document.Node, top *document.Map) *ensemble {
	names := r.featureNames(kind, top)
	name := text(file)
	if name == "" || !r.readFile(name, file) {
		return nil
	}
	sum := sha256.Sum256(r.treeData)
	if v := top.Get("sha256"); v != nil {
		if want, ok := v.Text(); ok && want != hex.EncodeToString(sum[:]) {
			v.Errorf("", "the SHA-256 of %s is %x", name, sum)
		}
	}
	r.m.trees = name + "@" + hex.EncodeToString(sum[:6])
	path := filepath.Join(filepath.Dir(r.m.file), name)
	var e *ensemble
	var err error
	if kind == lightgbm {
		e, err = readLightGBM(path, r.treeData)
	} else {
		e, err = readXGBoost(path, r.treeData, names)
	}
	var ps document.Problems
	if errors.As(err, &ps) {
		r.f.Problems = append(r.f.Problems, ps...)
		return nil
	}
	return e
}

func (r *reader) featureNames(kind string, top *document.Map) []string {
	v := top.Get("feature_names")
	switch {
	case v == nil:
		return nil
	case kind == lightgbm:
		v.Errorf("remove it", "a LightGBM file names its features itself; feature_names goes with xgboost")
		return nil
	}
	names := v.SomeTexts("leave the field out where the file names its features")
	if i := firstDouble(names); i >= 0 {
		v.Errorf("", "the feature name %q stands twice", document.Short(names[i]))
	}
	return names
}

// readFile reads a file beside the model file, or below its directory.
func (r *reader) readFile(name string, n *document.Node) bool {
	switch {
	case !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, `\:`):
		n.Errorf("write its file name, with forward slashes", "file %q leads out of the model's directory", document.Short(name))
		return false
	case r.dir == nil:
		n.Errorf("", "the tree file %s can only be read where the model is a file itself", document.Short(name))
		return false
	}
	data, err := readBounded(r.dir, name)
	if err != nil {
		n.Errorf("the tree file stands beside the model file", "%v", err)
		return false
	}
	r.treeData = data
	return true
}

func readBounded(dir fs.FS, name string) ([]byte, error) {
	st, err := fs.Stat(dir, name)
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTreeFile+1))
	if err == nil && len(data) > maxTreeFile {
		err = fmt.Errorf("%s has more than %d bytes", name, maxTreeFile)
	}
	return data, err
}

// inputs binds the features that the trees read to attributes: by their own name, or as
// the map says.
func (r *reader) inputs(e *ensemble, features, file *document.Node) {
	names := e.names
	mapped := map[string]document.Entry{}
	if features != nil {
		for _, m := range features.Map().Entries() {
			if !slices.Contains(names, m.Key) {
				r.f.Errorf(m.KeyPos, attribute.Suggest(m.Key, names), "features: the tree file has no feature %q", document.Short(m.Key))
			}
			mapped[m.Key] = m
		}
	}
	for i := range r.m.forest.inputs {
		in := &r.m.forest.inputs[i]
		at := file
		if m, ok := mapped[in.feature]; ok && !m.Value.IsNull() {
			at = m.Value
			r.mapping(m.Value, in, e.pandas)
		}
		if e.encoded != "" && in.codes == nil && in.numbers == nil && r.m.forest.categorical(in) {
			at.Errorf(`list what the codes stand for: {"name": ..., "categories": [...]}`,
				"feature %s: its categories were made codes of in training (%s), so that a number is not its own code", document.Short(in.feature), e.encoded)
		}
		if r.treeScope != nil {
			r.treeAttribute(at, in)
		}
	}
}

// mapping reads an attribute's name, or its name and the categories that its values are.
func (r *reader) mapping(n *document.Node, in *input, pandas [][]string) {
	if !n.IsMap() {
		in.name = text(n)
		return
	}
	m := n.Map("name", "categories")
	if v := m.Get("name"); v != nil {
		in.name = text(v)
	}
	if v := m.Need("categories"); v != nil {
		list := r.categories(v, in)
		if listed := func(p []string) bool { return slices.Equal(p, list) }; len(pandas) > 0 && list != nil && !slices.ContainsFunc(pandas, listed) {
			v.Errorf("the order is that of the codes", "%s is none of the lists in the file's pandas_categorical", v.Path())
		}
	}
}

// categories reads a list of texts, or of numbers, whose places are the codes. It returns
// them as [categoryText] does.
func (r *reader) categories(n *document.Node, in *input) []string {
	items := n.List()
	if n.IsList() && len(items) == 0 {
		n.Errorf("list the values in the order of their codes, the first is 0", "%s is empty", n.Path())
	}
	if len(items) > maxCategory {
		n.Errorf("", "%s: %d categories, the limit is %d", n.Path(), len(items), maxCategory)
		return nil
	}
	in.codes, in.numbers = map[string]float64{}, map[float64]float64{}
	var out []string
	for code, x := range items {
		v, ok := x.Value()
		number, isNumber := v.Number()
		before := len(in.codes) + len(in.numbers)
		switch {
		case !ok:
			continue
		case isNumber:
			in.numbers[number] = float64(code)
		case v.Type() == decision.String:
			in.codes[v.Str()] = float64(code)
		default:
			x.Errorf("", "%s must be text or a number", x.Path())
			continue
		}
		if len(in.codes)+len(in.numbers) == before {
			x.Errorf("", "%s: %s stands twice", n.Path(), document.Short(v.String()))
		}
		out = append(out, categoryText(v.Any()))
	}
	switch {
	case len(in.codes) > 0 && len(in.numbers) > 0:
		n.Errorf("an attribute has one type", "%s mixes texts and numbers", n.Path())
	case len(in.codes) > 0:
		in.numbers = nil
	default:
		in.codes = nil
	}
	return out
}

// categoryText writes a text or number so that equal ones are equal, whoever wrote them.
func categoryText(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case int64:
		return categoryText(float64(v))
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// treeAttribute checks that the attribute is one, and of a type that the feature can read.
func (r *reader) treeAttribute(n *document.Node, in *input) {
	a, err := r.treeScope.Use(in.name)
	if err != nil {
		n.Errorf(attribute.HintOf(err), "feature %s: %v", document.Short(in.feature), err)
		return
	}
	if a.Name != in.name {
		r.f.Warnf(n.Pos(), "write "+a.Name, "header names are recorded in lower case, %s is read as it is written", document.Short(in.name))
	}
	r.treeScope.WarnUnrecorded(r.f, n.Pos(), a)
	switch isText := a.Type == decision.String; {
	case isText && in.codes == nil:
		n.Errorf(`give its texts codes: {"name": ..., "categories": [...]}`, "feature %s is a number, but %s is string", document.Short(in.feature), a.Name)
	case !isText && in.codes != nil && a.Type != decision.Null:
		n.Errorf("leave out the categories: a number is its own code", "the categories are texts, but %s is %v", a.Name, a.Type)
	}
}
