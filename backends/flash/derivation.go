package flash

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/decision"
)

// Derivation is a matrix that was derived from another backend, and how it differs.
type Derivation struct {
	// Matrix is the matrix file, for [CompileMatrix].
	Matrix []byte
	// Cells is the size of the table; Measured of them hold requests, Made were filled with
	// the answer to a made-up request, and Unreached with the commonest action, since no
	// value reaches them.
	Cells, Measured, Made, Unreached int
	// Rows are the requests that were added, Weight what they stand for.
	Rows   int
	Weight float64
	// Differs lists the requests that the table answers otherwise than its source, by
	// cell, the heaviest first; it is empty when there is none.
	Differs []Difference
	// Unread are the attributes that the source reads and no dimension has.
	Unread []string
}

// Difference is the requests of one cell for which the source has another answer than the
// table.
type Difference struct {
	Cell string
	// Table and Source are the answers, Rule the source's rule (else its kind of reason).
	Table, Source, Rule string
	Rows                int
	Weight              float64
	// Example is the id of one of the requests.
	Example decision.ID
}

// ErrNoAnswer is wrapped by [Deriver.Finish] when the source has no action for some cell: a
// table always answers.
var ErrNoAnswer = errors.New("the source gives no action")

// Finish decides each cell and reports the requests that the table answers otherwise. A
// request without a cell is answered by the table's fallback, which is not set: it counts
// as a difference.
func (d *Deriver) Finish(ctx context.Context) (*Derivation, error) {
	out := &Derivation{Cells: len(d.cells), Rows: d.rows, Weight: d.weight, Unread: d.unread()}
	chosen := make([]answerKey, len(d.cells))
	var unreached []int
	total := map[answerKey]float64{}
	for i, cell := range d.cells {
		if len(cell) > 0 {
			out.Measured++
			chosen[i] = cell.heaviest()
		} else {
			a, reached, err := d.probe(ctx, i)
			if err != nil {
				return nil, err
			}
			if !reached {
				unreached = append(unreached, i)
				continue
			}
			out.Made++
			chosen[i] = a
		}
		if chosen[i].action == "" {
			return nil, fmt.Errorf("%w: cell %s is %s; give the source a fallback action", ErrNoAnswer, d.name(i), chosen[i])
		}
		total[chosen[i]]++
	}
	commonest := heaviest(total)
	for _, i := range unreached {
		chosen[i] = commonest
	}
	out.Unreached = len(unreached)
	d.differences(out, chosen)
	var err error
	out.Matrix, err = d.matrix(chosen)
	return out, err
}

// unread lists the attributes that only the source reads.
func (d *Deriver) unread() []string {
	var out []string
	for _, name := range d.source.Info().Attributes {
		if !slices.ContainsFunc(d.axes, func(a axis) bool { return a.from == name }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// heaviest is the answer with the most weight. A cell can only say an action, so that
// one goes before a decision without.
func (c derivedCell) heaviest() answerKey {
	weights := map[answerKey]float64{}
	for a, v := range c {
		if a.action != "" {
			weights[a] = v.weight
		}
	}
	if len(weights) == 0 {
		for a := range c {
			return a
		}
	}
	return heaviest(weights)
}

func heaviest(weights map[answerKey]float64) (best answerKey) {
	for a, w := range weights {
		if c := cmp.Compare(w, weights[best]); best == (answerKey{}) || c > 0 || c == 0 && a.String() < best.String() {
			best = a
		}
	}
	return best
}

func (d *Deriver) differences(out *Derivation, chosen []answerKey) {
	add := func(cell int, table answerKey, votes derivedCell) {
		for a, v := range votes {
			if cell >= 0 && a == table {
				continue
			}
			said := table.String()
			if cell < 0 {
				said = "(abstain)"
			}
			out.Differs = append(out.Differs, Difference{d.name(cell), said, a.String(), commonRule(v.rules), v.rows, v.weight, v.example})
		}
	}
	for i, votes := range d.cells {
		add(i, chosen[i], votes)
	}
	add(-1, answerKey{}, d.missed)
	slices.SortFunc(out.Differs, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Cell, b.Cell), strings.Compare(a.Source, b.Source))
	})
}

func commonRule(rules map[string]int) (best string) {
	for r, n := range rules {
		if n > rules[best] || n == rules[best] && r < best {
			best = r
		}
	}
	return best
}

// matrix writes the matrix file, one row of the last dimension a line, so that a cell can
// be found by its line.
func (d *Deriver) matrix(chosen []answerKey) ([]byte, error) {
	ids, actions, err := actionList(chosen)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("{\n")
	if v := cmp.Or(d.dims.version, d.source.Info().Artefact.StrategyVersion); v != "" {
		field(&b, "version", v)
	}
	if len(d.dims.scenarios) > 0 {
		field(&b, "scenarios", d.dims.scenarios)
	}
	field(&b, "dimensions", d.dims.dimensions)
	field(&b, "actions", actions)
	b.WriteString("  \"matrix\": ")
	d.nested(&b, chosen, ids, 0, 0)
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

func field(b *bytes.Buffer, name string, v any) {
	fmt.Fprintf(b, "  %q: ", name)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // texts, numbers, maps and lists of them
	b.Truncate(b.Len() - 1)
	b.WriteString(",\n")
}

// actionList gives each action an id, in order of their text.
func actionList(chosen []answerKey) (map[answerKey]int, []map[string]any, error) {
	ids := map[answerKey]int{}
	var keys []answerKey
	for _, a := range chosen {
		if _, ok := ids[a]; !ok {
			ids[a] = 0
			keys = append(keys, a)
		}
	}
	slices.SortFunc(keys, func(a, b answerKey) int { return strings.Compare(a.String(), b.String()) })
	var list []map[string]any
	for i, a := range keys {
		fields := map[string]any{}
		if a.params != "" {
			dec := json.NewDecoder(strings.NewReader(a.params))
			dec.UseNumber()
			if err := dec.Decode(&fields); err != nil {
				return nil, nil, fmt.Errorf("parameters of %s: %w", a.action, err)
			}
		}
		if _, taken := fields["id"]; taken {
			return nil, nil, fmt.Errorf("action %s has a parameter id, which a table's action cannot have", a.action)
		}
		ids[a] = i + 1
		fields["id"], fields["name"] = i+1, a.action
		list = append(list, fields)
	}
	return ids, list, nil
}

func (d *Deriver) nested(b *bytes.Buffer, chosen []answerKey, ids map[answerKey]int, dim, cell int) {
	last := dim == len(d.axes)-1
	b.WriteByte('[')
	for i := range d.axes[dim].values {
		if i > 0 {
			b.WriteByte(',')
		}
		at := cell + i*d.axes[dim].stride
		if last {
			fmt.Fprint(b, ids[chosen[at]])
			continue
		}
		b.WriteString("\n" + strings.Repeat("  ", dim+2))
		d.nested(b, chosen, ids, dim+1, at)
	}
	b.WriteByte(']')
}
