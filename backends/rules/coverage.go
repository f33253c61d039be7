package rules

import (
	"cmp"
	"context"
	"slices"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/expr"
)

// maxExamined bounds how many of the rows that no rule decides are looked into, rule by
// rule and condition by condition.
const maxExamined = 5000

// Coverage is what the rules of a file do on recorded decisions.
type Coverage struct {
	// Rows counts the decisions, Weight the decisions that were offered, which the rows
	// stand for.
	Rows   int
	Weight float64
	// Rules are those in force, in file order.
	Rules []Hits
	// Uncovered are the rows that no rule decided.
	Uncovered Count
	// Examined is how many of the uncovered rows Missing, Near and Common speak of: the
	// first ones.
	Examined int
	// Missing are the attributes whose absence kept a rule from being evaluated, Near the
	// single conditions that kept a rule from matching, Common the texts that the uncovered
	// rows have most often; each the most frequent first.
	Missing []Named
	Near    []NearMiss
	Common  []Named
}

// Count is a number of rows, and the offered decisions that they stand for.
type Count struct {
	Rows   int
	Weight float64
}

func (c *Count) add(weight float64) {
	c.Rows++
	c.Weight += weight
}

// Hits is what one rule did.
type Hits struct {
	Rule     string
	Position decision.Position
	// Decides is false for a rule that marks only; its matches are not counted.
	Decides bool
	Count
}

// Named is an attribute (Missing), or an attribute with one of its texts (Common).
type Named struct {
	Name, Text string
	Rows       int
}

// NearMiss is a condition that was false while all others of its rule were true.
type NearMiss struct {
	Rule, Condition string
	Position        decision.Position
	Rows            int
}

// Cover decides every row of a batch and counts what the rules did. weights runs parallel
// to the rows; nil weighs every row 1.
func (e *Engine) Cover(ctx context.Context, in *decision.Batch, weights []float64) (*Coverage, error) {
	var out decision.Answers
	if err := e.DecideBatch(ctx, in, &out); err != nil {
		return nil, err
	}
	p := e.program.Load()
	c := &Coverage{Rows: in.Len()}
	for _, r := range p.rules {
		c.Rules = append(c.Rules, Hits{Rule: r.id, Position: r.pos, Decides: r.action != nil})
	}
	x := &examination{engine: e, program: p, in: in, near: map[*node]*NearMiss{}, missing: map[string]int{}, common: map[Named]int{}}
	for i := range out.Rows {
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		c.Weight += w
		if rule := out.Rows[i].Rule; rule >= 0 {
			c.Rules[rule].add(w)
			continue
		}
		c.Uncovered.add(w)
		if c.Examined < maxExamined {
			c.Examined++
			x.row(i)
		}
	}
	x.report(c)
	return c, ctx.Err()
}

// examination looks into the rows that no rule decides.
type examination struct {
	engine  *Engine
	program *program
	in      *decision.Batch
	near    map[*node]*NearMiss
	missing map[string]int
	common  map[Named]int
}

func (x *examination) row(i int) {
	names := x.engine.file.scope.Names()
	row := expr.Row{Values: make([]decision.Value, len(names)), At: make([]int, len(names))}
	for slot, name := range names {
		row.At[slot] = slot
		if at := x.in.Schema().Index(name); at >= 0 {
			row.Values[slot] = x.in.Column(at).Value(i)
		}
		if v := row.Values[slot]; v.Type() == decision.String {
			x.common[Named{Name: name, Text: v.Str()}]++
		}
	}
	input := input{row: row, now: x.in.Now(i)}
	lacking := map[string]bool{}
	for _, r := range x.program.rules {
		if s, ok := r.skipped(&input); ok {
			for _, name := range s.Missing {
				lacking[name] = true
			}
		} else if n := r.alone(&row); n != nil {
			x.miss(r, n)
		}
	}
	for name := range lacking {
		x.missing[name]++
	}
}

// alone returns the only condition of a rule that does not hold, or nil.
func (r *rule) alone(row *expr.Row) *node {
	var only *node
	for i := range r.conditions {
		n := &r.conditions[i]
		if n.holds(row) == expr.True {
			continue
		}
		if only != nil {
			return nil
		}
		only = n
	}
	return only
}

func (x *examination) miss(r *rule, n *node) {
	m := x.near[n]
	if m == nil {
		m = &NearMiss{Rule: r.id, Condition: n.text(), Position: n.pos}
		x.near[n] = m
	}
	m.Rows++
}

// shown bounds each list of a report.
const shown = 10

func (x *examination) report(c *Coverage) {
	for name, n := range x.missing {
		c.Missing = append(c.Missing, Named{Name: name, Rows: n})
	}
	for k, n := range x.common {
		if k.Rows = n; n > 1 {
			c.Common = append(c.Common, k)
		}
	}
	for _, m := range x.near {
		c.Near = append(c.Near, *m)
	}
	byRows := func(a, b Named) int {
		return cmp.Or(b.Rows-a.Rows, cmp.Compare(a.Name, b.Name), cmp.Compare(a.Text, b.Text))
	}
	slices.SortFunc(c.Missing, byRows)
	slices.SortFunc(c.Common, byRows)
	slices.SortFunc(c.Near, func(a, b NearMiss) int {
		return cmp.Or(b.Rows-a.Rows, a.Position.Line-b.Position.Line, a.Position.Column-b.Position.Column)
	})
	c.Missing, c.Common, c.Near = c.Missing[:min(shown, len(c.Missing))], c.Common[:min(shown, len(c.Common))], c.Near[:min(shown, len(c.Near))]
}
