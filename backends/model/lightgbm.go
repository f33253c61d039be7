package model

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

// lightGBM reads a model in LightGBM's text format, line by line, and stops at the first
// error: nobody writes such a file by hand.
type lightGBM struct {
	name string
	rest string
	// version is that of the format.
	version string
	line    int
	e       ensemble
	// features is the number of features that the header announces.
	features, perRound int
}

// lgLine is a line `key=value` and where the value stands.
type lgLine struct {
	key, value, text string
	pos              decision.Position
}

// readLightGBM returns the ensemble; the error is a [document.Problems] of one.
func readLightGBM(name string, data []byte) (*ensemble, error) {
	r := &lightGBM{name: name, rest: string(data)}
	r.e = ensemble{engine: "lightgbm/1", scale: 1}
	if err := r.file(); err != nil {
		return nil, err
	}
	return &r.e, nil
}

func problem(pos decision.Position, hint, format string, args ...any) error {
	f := &document.File{Name: pos.File}
	f.Errorf(pos, hint, format, args...)
	return f.Err()
}

func (r *lightGBM) errorf(hint, format string, args ...any) error {
	return problem(decision.Position{File: r.name, Line: max(1, r.line), Column: 1}, hint, format, args...)
}

// next returns the next line that is not empty; ok is false at the end.
func (r *lightGBM) next() (l lgLine, ok bool) {
	for r.rest != "" {
		text, rest, _ := strings.Cut(r.rest, "\n")
		r.rest, r.line = rest, r.line+1
		if text = strings.TrimRight(text, "\r "); text == "" {
			continue
		}
		key, value, found := strings.Cut(text, "=")
		l = lgLine{key: key, value: value, text: text, pos: decision.Position{File: r.name, Line: r.line, Column: 1}}
		if found {
			l.pos.Column = len(key) + 2
		}
		return l, true
	}
	return lgLine{}, false
}

func (l *lgLine) errorf(hint, format string, args ...any) error {
	return problem(l.pos, hint, format, args...)
}

func (r *lightGBM) file() error {
	if first, ok := r.next(); !ok || first.key != "tree" {
		hint := "save the model with Booster.save_model"
		if strings.HasPrefix(strings.TrimSpace(first.key), "{") {
			hint = "JSON is dump_model, which cannot be loaded by LightGBM either; use save_model"
		}
		return r.errorf(hint, `not a LightGBM text model: the first line is not "tree"`)
	}
	l, err := r.header()
	if err != nil {
		return err
	}
	total := 0
	for ; strings.HasPrefix(l.key, "Tree"); total = r.total() {
		if want := strconv.Itoa(len(r.e.trees)); l.key != "Tree" || l.value != want {
			return l.errorf("", "expected Tree=%s", want)
		}
		if l, err = r.tree(total); err != nil {
			return err
		}
	}
	switch n := len(r.e.trees); {
	case l.key != "end of trees":
		return r.errorf("the file may have been cut off", `expected "end of trees" after %d trees`, n)
	case n == 0:
		return r.errorf("", "the model has no tree")
	case n%r.perRound != 0:
		return r.errorf("", "%d trees are no multiple of num_tree_per_iteration, %d", n, r.perRound)
	}
	if r.e.rounds > 0 {
		r.e.rounds = len(r.e.trees) / r.perRound
	}
	return r.pandas()
}

// pandas reads the line behind the trees that lists the categories of the columns that
// pandas had as such. Which columns they were the file does not say.
func (r *lightGBM) pandas() error {
	for l, ok := r.next(); ok; l, ok = r.next() {
		text, found := strings.CutPrefix(l.text, "pandas_categorical:")
		if !found || text == "null" {
			continue
		}
		var lists [][]any
		if err := json.Unmarshal([]byte(text), &lists); err != nil {
			return r.errorf("", "pandas_categorical is no list of lists")
		}
		for _, list := range lists {
			texts := make([]string, len(list))
			for i, v := range list {
				texts[i] = categoryText(v)
			}
			r.e.pandas, r.e.encoded = append(r.e.pandas, texts), "pandas_categorical"
		}
	}
	return nil
}

func (r *lightGBM) total() int {
	n := 0
	for i := range r.e.trees {
		n += len(r.e.trees[i].nodes)
	}
	return n
}

// header reads up to the first tree, or the end of trees, and returns that line.
func (r *lightGBM) header() (lgLine, error) {
	var objective lgLine
	classes := 1
	for {
		l, ok := r.next()
		var err error
		switch {
		case !ok:
			return l, r.errorf("the file may have been cut off", "the file ends in its header")
		case l.key == "Tree" || l.key == "end of trees":
			return l, r.checkHeader(objective, classes)
		case l.key == "version":
			r.version = l.value
			if !slices.Contains([]string{"v2", "v3", "v4"}, l.value) {
				err = l.errorf("v2, v3 and v4 are read", "unknown version %q", document.Short(l.value))
			}
		case l.key == "num_class":
			classes, err = l.int(1, maxClasses)
		case l.key == "num_tree_per_iteration":
			r.perRound, err = l.int(1, maxClasses)
		case l.key == "max_feature_idx":
			r.features, err = l.int(0, maxColumns)
			r.features++
		case l.key == "objective":
			objective = l
		case l.key == "average_output":
			r.e.rounds = 1
		case l.key == "feature_names":
			r.e.names = strings.Fields(l.value)
		}
		if err != nil {
			return l, err
		}
	}
}

func (r *lightGBM) checkHeader(objective lgLine, classes int) error {
	switch {
	case r.perRound == 0:
		return r.errorf("", "the header has no num_tree_per_iteration")
	case r.e.rounds > 0 && r.version == "v2":
		return r.errorf("train it again with LightGBM 3 or later", "a random forest (average_output) of version v2: its leaves may be probabilities or logits, which depends on the release")
	case r.features == 0 || len(r.e.names) != r.features:
		return r.errorf("", "%d feature_names for %d features", len(r.e.names), r.features)
	}
	if i := firstDouble(r.e.names); i >= 0 {
		return r.errorf("", "the feature name %q stands twice", document.Short(r.e.names[i]))
	}
	want := classes
	if err := r.objective(objective, &want); err != nil {
		return err
	}
	if r.perRound != want {
		return r.errorf("", "num_tree_per_iteration is %d, the objective has %d", r.perRound, want)
	}
	r.e.groups, r.e.base = want, make([]float64, want)
	return nil
}

func firstDouble(names []string) int {
	seen := make(map[string]bool, len(names))
	for i, n := range names {
		if seen[n] {
			return i
		}
		seen[n] = true
	}
	return -1
}

// objective accepts those whose sums are logits of classes.
func (r *lightGBM) objective(l lgLine, classes *int) error {
	words := strings.Fields(l.value)
	if len(words) == 0 {
		return r.errorf("train with objective binary or multiclass", "the header names no objective: it is not known what the sums mean")
	}
	switch words[0] {
	case "binary":
		*classes = 1
		for _, w := range words[1:] {
			if s, ok := strings.CutPrefix(w, "sigmoid:"); ok {
				x, err := strconv.ParseFloat(s, 64)
				if err != nil || !(x > 0) || math.IsInf(x, 1) {
					return l.errorf("", "sigmoid %q must be a number above 0", document.Short(s))
				}
				r.e.scale = x
			}
		}
		return nil
	case "multiclass":
		if *classes < 2 {
			return l.errorf("", "multiclass with num_class %d", *classes)
		}
		return nil
	case "multiclassova":
		return l.errorf("train with objective multiclass", "objective multiclassova gives each class a probability of its own, which do not sum to 1")
	}
	return l.errorf("train with objective binary or multiclass", "objective %q predicts no class: which action would its numbers mean?", document.Short(words[0]))
}

func (l *lgLine) int(lo, hi int) (int, error) {
	n, err := strconv.Atoi(l.value)
	if err != nil || n < lo || n > hi {
		return 0, l.errorf("", "%s must be a whole number from %d to %d, got %q", l.key, lo, hi, document.Short(l.value))
	}
	return n, nil
}

// ints reads n numbers; n < 0 takes any number of them.
func (l *lgLine) ints(n int, lo, hi int64) ([]int64, error) {
	var out []int64
	err := l.words(n, func(w string) bool {
		x, err := strconv.ParseInt(w, 10, 64)
		out = append(out, x)
		return err == nil && x >= lo && x <= hi
	})
	return out, err
}

func (l *lgLine) floats(n int) ([]float64, error) {
	var out []float64
	err := l.words(n, func(w string) bool {
		x, err := strconv.ParseFloat(w, 64)
		out = append(out, x)
		return err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
	})
	return out, err
}

// words gives each word of the line to add, which is false when it cannot be.
func (l *lgLine) words(n int, add func(string) bool) error {
	count, rest, column := 0, l.value, l.pos.Column
	for rest != "" {
		w, after, _ := strings.Cut(rest, " ")
		if w != "" && !add(w) {
			return problem(decision.Position{File: l.pos.File, Line: l.pos.Line, Column: column}, "", "%s: %q is not a number that can stand here", l.key, document.Short(w))
		}
		if w != "" {
			count++
		}
		rest, column = after, column+len(w)+1
	}
	if n >= 0 && count != n {
		return l.errorf("num_leaves and num_cat stand before the other lines of a tree", "%s has %d numbers, want %d", l.key, count, n)
	}
	return nil
}
