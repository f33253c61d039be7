package expr

import (
	"fmt"
	"sync"

	"cel.dev/cel-go/common/types"

	"github.com/clefbench/clefbench/decision"
)

// Calculation is a compiled expression that gives a number. It is safe for concurrent
// use.
type Calculation struct {
	reading
	eval func(*Row) (decision.Value, bool) // nil when not lowered
	// rows are copies for eval: what is called through a function value escapes, and the
	// caller's row would have to live on the heap in every decision of an engine that may
	// hold a calculation.
	rows sync.Pool
}

// Value returns the number for a row, an int or a double; false when it cannot be
// computed (an absent attribute, overflow, division of an int by zero) or is no number.
func (c *Calculation) Value(row *Row) (decision.Value, bool) {
	r, ok := c.rows.Get().(*Row)
	if !ok {
		r = new(Row)
	}
	*r = *row
	v, ok := c.value(r)
	*r = Row{}
	c.rows.Put(r)
	return v, ok
}

func (c *Calculation) value(row *Row) (decision.Value, bool) {
	if c.eval == nil {
		v, err := c.evalCEL(row)
		return v, err == nil
	}
	v, ok := c.eval(row)
	_, number := v.Number()
	return v, ok && number
}

// Explain says why the expression has no value for a row: the attributes that are
// absent, and the reason in words. It runs the cel-go program and is slow.
func (c *Calculation) Explain(row *Row) (missing []string, cause string) {
	for i := range c.reads {
		if a := &c.reads[i]; row.Get(a) == nil {
			missing = append(missing, a.Name)
		}
	}
	if _, err := c.evalCEL(row); err != nil {
		cause = err.Error()
	}
	return missing, cause
}

func (c *Calculation) evalCEL(row *Row) (decision.Value, error) {
	out, _, err := c.cel.Eval(activation{row})
	if err != nil {
		return decision.Value{}, err
	}
	switch x := out.(type) {
	case types.Int:
		return decision.IntValue(int64(x)), nil
	case types.Double:
		return decision.DoubleValue(float64(x)), nil
	}
	return decision.Value{}, fmt.Errorf("the expression gives %s, not a number", out.Type().TypeName())
}
