package model

import (
	"io/fs"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/attribute"
	"github.com/clefbench/clefbench/internal/document"
)

// Check returns all findings of a model file, warnings included, ordered by position.
// Schema holds the attributes of the data set at hand and may be nil; a feature that it
// does not record is a warning.
//
// It is stricter than [Compile], which knows no data set: a feature must read a built-in
// name or one that the data set records, of a type that it can read.
func Check(name string, data []byte, schema *decision.Schema) document.Problems {
	return CheckIn(nil, name, data, schema)
}

// CheckIn is [Check] for a model whose tree file is in dir, the directory of the model file.
func CheckIn(dir fs.FS, name string, data []byte, schema *decision.Schema) document.Problems {
	scope := attribute.NewClosedScope(schema)
	r := &reader{dir: dir, m: &Model{file: name}, scope: scope, treeScope: scope}
	r.read(name, data)
	r.f.Problems.Sort()
	return r.f.Problems
}

// attribute checks that the feature can read what it names.
func (r *reader) attribute(n *document.Node, m *document.Map, f *feature) {
	a, err := r.scope.Use(f.name)
	if err != nil {
		n.Errorf(attribute.HintOf(err), "%v", err)
		return
	}
	if a.Name != f.name {
		r.f.Warnf(n.Pos(), "write "+a.Name, "header names are recorded in lower case, %s is read as it is written", f.name)
	}
	r.scope.WarnUnrecorded(r.f, n.Pos(), a)
	isText := a.Type == decision.String
	switch f.kind {
	case numeric, bins:
		if isText {
			n.Errorf(`use "equals" or "contains"`, "the feature needs a number, but %s is %v", a.Name, a.Type)
		}
	case contains:
		if !isText && a.Type != decision.Null {
			n.Errorf("use a number as it is, or bins", "contains needs a text, but %s is %v", a.Name, a.Type)
		}
	case equals:
		if _, ok := f.equal.Convert(a.Type); !ok && a.Type != decision.Null {
			m.Get("equals").Errorf("", "%s is %v, the value %s is %v: they are never equal", a.Name, a.Type, document.Short(f.equal.String()), f.equal.Type())
		}
	}
}
