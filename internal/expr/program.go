package expr

import (
	"fmt"
	"math"
	"reflect"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/prefilter"
)

// Program is a compiled condition. It is safe for concurrent use.
type Program struct {
	reading
	eval func(*Row) Truth // nil when not lowered
	// always: it is the literal true.
	always    bool
	necessary []prefilter.Test
}

// reading is the cel-go program of an expression, and what it reads.
type reading struct {
	cel   cel.Program
	reads []Attr
	// offsets say where each of reads is first named.
	offsets []int
}

// Eval returns the condition's truth for a row. A lowered program allocates nothing
// unless it joins texts.
func (p *Program) Eval(row *Row) Truth {
	if p.eval != nil {
		return p.eval(row)
	}
	t, _ := p.evalCEL(row)
	if t == False && p.readsNaN(row) {
		return Unordered
	}
	return t
}

// Lowered reports whether the condition runs as closures, not in cel-go.
func (p *Program) Lowered() bool { return p.eval != nil }

// Always reports whether the condition is the literal true.
func (p *Program) Always() bool { return p.always }

// Reads returns the attributes that the expression names, in slot order.
func (p *reading) Reads() []Attr { return p.reads }

// Names returns the names of [Program.Reads].
func (p *Program) Names() []string {
	names := make([]string, len(p.reads))
	for i, a := range p.reads {
		names[i] = a.Name
	}
	return names
}

// Explain says why a condition is Unknown or Unordered for a row: the attributes that
// are absent, and the reason in words. It runs the cel-go program and is slow.
func (p *Program) Explain(row *Row) (missing []string, cause string) {
	for i := range p.reads {
		if a := &p.reads[i]; row.Get(a) == nil {
			missing = append(missing, a.Name)
		}
	}
	if _, err := p.evalCEL(row); err != nil {
		return missing, err.Error()
	}
	for i := range p.reads {
		a := &p.reads[i]
		if v := row.Get(a); v != nil && math.IsNaN(v.Double()) {
			return missing, a.Name + " is NaN"
		}
	}
	return missing, "a computed value is NaN"
}

func (p *reading) readsNaN(row *Row) bool {
	for i := range p.reads {
		if v := row.Get(&p.reads[i]); v != nil && math.IsNaN(v.Double()) {
			return true
		}
	}
	return false
}

// evalCEL runs the cel-go program.
func (p *Program) evalCEL(row *Row) (Truth, error) {
	out, _, err := p.cel.Eval(activation{row})
	if err != nil {
		return Unknown, err
	}
	b, ok := out.(types.Bool)
	if !ok {
		return Unknown, fmt.Errorf("the condition gives %s, not true or false", out.Type().TypeName())
	}
	return truthOf(bool(b)), nil
}

// activation hands the row to a cel-go program as the variable that reads refer to.
type activation struct{ row *Row }

func (a activation) ResolveName(name string) (any, bool) {
	if name == varRow {
		return rowValue(a), true
	}
	return nil, false
}

func (activation) Parent() cel.Activation { return nil }

// rowValue is a row as an opaque CEL value.
type rowValue struct{ row *Row }

func rowType() *types.Type { return types.NewOpaqueType("clefbench.row") }

func (rowValue) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("no conversion to %v", t)
}
func (rowValue) ConvertToType(t ref.Type) ref.Val {
	return types.NewErr("no conversion to %s", t.TypeName())
}
func (rowValue) Equal(ref.Val) ref.Val { return types.False }
func (rowValue) Type() ref.Type        { return rowType() }
func (v rowValue) Value() any          { return v.row }

// rowOptions declares what the rewriter emits, and the functions of the language.
func rowOptions(scope *Scope) []cel.EnvOption {
	opts := []cel.EnvOption{
		cel.Variable(varRow, rowType()),
		cel.Function("confidence", cel.Overload("confidence_double", []*cel.Type{cel.DoubleType}, cel.DoubleType,
			cel.UnaryBinding(confidenceValue))),
	}
	for fn, t := range map[string]*cel.Type{
		fnBool: cel.BoolType, fnInt: cel.IntType, fnDouble: cel.DoubleType, fnString: cel.StringType, fnDyn: cel.DynType, fnHas: cel.BoolType,
	} {
		has := fn == fnHas
		opts = append(opts, cel.Function(fn, cel.Overload(fn+"_row", []*cel.Type{rowType(), cel.IntType}, t,
			cel.BinaryBinding(func(row, slot ref.Val) ref.Val {
				return readValue(row.(rowValue).row, scope.Attr(int(slot.(types.Int))), has)
			}))))
	}
	return opts
}

func readValue(row *Row, a Attr, has bool) ref.Val {
	raw := row.Get(&a)
	if has {
		return types.Bool(raw != nil)
	}
	if raw == nil {
		return types.NewErr("no such attribute: %s", a.Name)
	}
	v, ok := row.typed(&a)
	if !ok {
		return types.NewErr("%s is %v, not %v", a.Name, raw.Type(), a.Type)
	}
	switch v.Type() {
	case decision.Bool:
		return types.Bool(v.Bool())
	case decision.Int:
		return types.Int(v.Int())
	case decision.Double:
		return types.Double(v.Double())
	}
	return types.String(v.Str())
}

// ConfidenceDef names the definition of confidence(p).
const ConfidenceDef = "peak"

// Confidence is how sure a two-way score p in [0,1] is: the larger of p and 1-p. It is
// false outside [0,1]; NaN stays NaN.
func Confidence(p float64) (float64, bool) {
	if p < 0 || p > 1 {
		return 0, false
	}
	return math.Max(p, 1-p), true
}

func confidenceValue(v ref.Val) ref.Val {
	c, ok := Confidence(float64(v.(types.Double)))
	if !ok {
		return types.NewErr("confidence of %v, which is not in [0,1]", v.Value())
	}
	return types.Double(c)
}
