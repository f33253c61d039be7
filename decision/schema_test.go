package decision

import (
	"reflect"
	"strings"
	"sync"
	"testing"
)

func schema(t testing.TB, fields ...Field) *Schema {
	t.Helper()
	s, err := NewSchema(fields...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNewSchemaRefuses(t *testing.T) {
	for want, fields := range map[string][]Field{
		"declared twice":               {{"a", Int}, {"b", Int}, {"a", Int}},
		`attribute 0: name ""`:         {{"", Int}},
		`name "a" with type null`:      {{"a", Null}},
		`name "a" with type type(200)`: {{"a", 200}},
	} {
		if _, err := NewSchema(fields...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", fields, err, want)
		}
	}
}

func TestSchemaDoesNotShareTheCallersSlice(t *testing.T) {
	fields := []Field{{"a", Int}}
	s := schema(t, fields...)
	fields[0].Name = "changed"
	if s.Fields()[0].Name != "a" || s.Index("a") != 0 || s.Index("changed") != -1 {
		t.Errorf("fields %v", s.Fields())
	}
}

func TestNilSchemaIsEmpty(t *testing.T) {
	var s *Schema
	if s.Len() != 0 || s.Fields() != nil || s.Index("a") != -1 || !(Attrs{}).Get("a").IsNull() {
		t.Error("a nil schema is not empty")
	}
}

func TestUnion(t *testing.T) {
	got, err := Union(schema(t, Field{"b", Int}, Field{"a", String}), nil, schema(t, Field{"a", String}, Field{"c", Double}))
	if want := []Field{{"b", Int}, {"a", String}, {"c", Double}}; err != nil || !reflect.DeepEqual(got.Fields(), want) {
		t.Errorf("%v, %v", got.Fields(), err)
	}
	if _, err := Union(schema(t, Field{"a", Int}), schema(t, Field{"a", Double})); err == nil || !strings.Contains(err.Error(), `"a" is int in one place and double in another`) {
		t.Errorf("%v", err)
	}
}

func TestAttrs(t *testing.T) {
	a := Attrs{Schema: schema(t, Field{"x", Int}, Field{"y", Int}), Values: []Value{IntValue(1)}}
	if a.Get("x") != IntValue(1) || !a.Get("y").IsNull() || !a.Get("z").IsNull() || !a.At(-1).IsNull() || !a.At(7).IsNull() {
		t.Errorf("%v", a)
	}
}

// Several schemas in turn, from several goroutines: each binding is the schema's own.
func TestBinder(t *testing.T) {
	b := NewBinder("x", "gone", "y")
	schemas := []*Schema{schema(t, Field{"x", Int}, Field{"y", Int}), schema(t, Field{"y", Int}, Field{"z", Int}, Field{"x", Int}), nil}
	want := [][]int{{0, -1, 1}, {2, -1, 0}, {-1, -1, -1}}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for k := range 300 {
				i := (w + k) % 3
				if got := b.Bind(schemas[i]); !reflect.DeepEqual(got, want[i]) {
					t.Errorf("schema %d: %v, want %v", i, got, want[i])
					return
				}
			}
		})
	}
	wg.Wait()
	if n := testing.AllocsPerRun(100, func() { b.Bind(schemas[0]) }); n != 0 {
		t.Errorf("%v allocations for a schema that is bound already", n)
	}
}
