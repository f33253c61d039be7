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
	r.inputs(e.names, top.Get("features"), file)
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
func (r *reader) inputs(names []string, features, file *document.Node) {
	mapped := map[string]document.Entry{}
	if features != nil {
		for _, e := range features.Map().Entries() {
			if !slices.Contains(names, e.Key) {
				r.f.Errorf(e.KeyPos, attribute.Suggest(e.Key, names), "features: the tree file has no feature %q", document.Short(e.Key))
			}
			mapped[e.Key] = e
		}
	}
	for i := range r.m.forest.inputs {
		in := &r.m.forest.inputs[i]
		at := file
		if e, ok := mapped[in.feature]; ok && !e.Value.IsNull() {
			at = e.Value
			r.mapping(e.Value, in)
		}
		if r.treeScope != nil {
			r.treeAttribute(at, in)
		}
	}
}

// mapping reads an attribute's name, or its name and the categories that its texts are.
func (r *reader) mapping(n *document.Node, in *input) {
	if !n.IsMap() {
		in.name = text(n)
		return
	}
	m := n.Map("name", "categories")
	if v := m.Get("name"); v != nil {
		in.name = text(v)
	}
	if v := m.Need("categories"); v != nil {
		list := v.SomeTexts("list the texts in the order of their codes, the first is 0")
		in.codes = make(map[string]float64, len(list))
		for code, s := range list {
			if _, double := in.codes[s]; double {
				v.Errorf("", "%s: %q stands twice", v.Path(), document.Short(s))
			}
			in.codes[s] = float64(code)
		}
		if len(list) > maxCategory {
			v.Errorf("", "%s: %d categories, the limit is %d", v.Path(), len(list), maxCategory)
		}
	}
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
