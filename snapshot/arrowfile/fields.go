package arrowfile

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/clefbench/clefbench/decision"
)

// spec binds a column to a place in a row: one description for the writer (put), the
// reader (bind) and the schema (shape).
type spec struct {
	shape shape
	// at is the place's distance from the beginning of the row.
	at uintptr
	// guard tests for null at guardAt before put is called.
	guard   guard
	guardAt uintptr
	put     putter
	// putsChildren: put fills the children's columns as well.
	putsChildren bool
	bind         binder
	fields       []spec
}

// binder prepares the reading of one batch: it appends what loads the column.
type binder func(s *spec, v *vector, out loads) (loads, error)

// field is the spec of a place in rows of type R.
type field[R any] struct{ spec }

// required makes the column one that has no nulls and that a file must have.
func (f field[R]) required() field[R] {
	f.shape.nullable = false
	return f
}

// place is the distance of a part of a row from the row's beginning.
func place[R, T any](at func(*R) *T) uintptr {
	r := new(R)
	return uintptr(unsafe.Pointer(at(r))) - uintptr(unsafe.Pointer(r))
}

// leaf is a field without children.
func leaf[R any](name string, typ dataType, width int, at uintptr, put putter, load loader) field[R] {
	return field[R]{spec{shape: shape{name: name, typ: typ, width: width, nullable: true, dict: noDict},
		at: at, put: put, bind: bindTo(load)}}
}

// unless makes the writer take the value for null when the guard says so.
func (f field[R]) unless(g guard, at uintptr) field[R] {
	f.guard, f.guardAt = g, at
	return f
}

// text is a utf8 column; the empty string is null.
func text[R any, S ~string](name string, at func(*R) *S) field[R] {
	p := place(at)
	return leaf[R](name, typeUTF8, 0, p, putText, loadText).unless(guardWord, p+unsafe.Sizeof(p))
}

// label is a column of a closed label set: codes with a dictionary. Readers take plain
// utf8 as well, as they take dictionaries for text.
func label[R any, S ~string](name string, at func(*R) *S) field[R] {
	f := text(name, at)
	f.shape.dict, f.shape.index = 0, 2
	f.put = putLabel
	return f
}

// enum is a label that stands for a number of a closed set; 0 is null.
func enum[R any, E ~uint8](name string, format func(E) string, parse func(string) (E, error), at func(*R) *E) field[R] {
	p := place(at)
	f := leaf[R](name, typeUTF8, 0, p, func(c *column, p unsafe.Pointer) { c.label(format(*(*E)(p))) }, nil).unless(guardByte, p)
	f.shape.dict, f.shape.index = 0, 2
	f.bind = func(s *spec, v *vector, out loads) (loads, error) {
		codes, table, err := parseLabels(v, parse)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
		return append(out, load{v, s.at, func(v *vector, from int, p places) {
			for i := range p.n {
				e := (*E)(p.at(i))
				if *e = 0; v.ok(from + i) {
					*e = table[codes(from+i)]
				}
			}
		}}), nil
	}
	return f
}

// parseLabels parses each label of a batch once. It returns the parsed labels and the
// row's index into them.
func parseLabels[T any](v *vector, parse func(string) (T, error)) (codes func(int) int, table []T, err error) {
	labels, codes := v.labels()
	table = make([]T, len(labels))
	for i, s := range labels {
		if table[i], err = parse(s); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrSchema, err)
		}
	}
	return codes, table, nil
}

// blob is a binary column; nil is null, an empty slice is not. Rows that were read alias
// the batch.
func blob[R any](name string, at func(*R) *[]byte) field[R] {
	p := place(at)
	return leaf[R](name, typeBinary, 0, p, putBlob, loadBlob).unless(guardWord, p)
}

// uuid is an id column; the zero id is null.
func uuid[R any](name string, at func(*R) *decision.ID) field[R] {
	return leaf[R](name, typeFixed, 16, place(at), putID, loadID)
}

// hash is a column of a fixed number of bytes that may be absent. A is an array of bytes.
func hash[R, A any](name string, at func(*R) *decision.Opt[A]) field[R] {
	p, set := optPlaces(at)
	return leaf[R](name, typeFixed, int(set-p), p, putFixed, loadOptFixed).unless(guardByte, set)
}

// digest is a SHA-256 column; all zeroes is null.
func digest[R any](name string, at func(*R) *[32]byte) field[R] {
	return leaf[R](name, typeFixed, 32, place(at), putDigest, loadFixed)
}

// instant is a timestamp in nanoseconds, UTC; the zero time is null.
func instant[R any](name string, at func(*R) *time.Time) field[R] {
	return leaf[R](name, typeTimestamp, 8, place(at), putInstant, loadInstant)
}

// optPlaces are the places of an Opt's value and of its flag.
func optPlaces[R, T any](at func(*R) *decision.Opt[T]) (value, set uintptr) {
	value = place(func(r *R) *T { return &at(r).V })
	return value, place(func(r *R) *bool { return &at(r).Set })
}

// optional is a column that is null where an Opt is not set.
func optional[R, T any](name string, typ dataType, at func(*R) *decision.Opt[T], put putter, load loader) field[R] {
	p, set := optPlaces(at)
	return leaf[R](name, typ, typ.bytes(), p, put, load).unless(guardByte, set)
}

func optInt64[R any, T ~int64](name string, at func(*R) *decision.Opt[T]) field[R] {
	return optional(name, typeInt64, at, put64, loadOpt64)
}

func optInt8[R any](name string, at func(*R) *decision.Opt[int8]) field[R] {
	return optional(name, typeInt8, at, put8, loadOpt8)
}

func optFloat64[R any](name string, at func(*R) *decision.Opt[float64]) field[R] {
	return optional(name, typeFloat64, at, put64, loadOpt64)
}

func optFloat32[R any](name string, at func(*R) *decision.Opt[float32]) field[R] {
	return optional(name, typeFloat32, at, put32, loadOpt32)
}

func optBool[R any](name string, at func(*R) *decision.Opt[bool]) field[R] {
	return optional(name, typeBool, at, putBool, loadOptBool)
}

// number64 is an int64 column without nulls.
func number64[R any](name string, at func(*R) *int64) field[R] {
	return leaf[R](name, typeInt64, 8, place(at), put64, load64).required()
}

// number32 is an int32 column without nulls.
func number32[R any](name string, at func(*R) *int32) field[R] {
	return leaf[R](name, typeInt32, 4, place(at), put32, load32).required()
}

// count is an int32 column without nulls of a number of 16 bits.
func count[R any](name string, at func(*R) *uint16) field[R] {
	return leaf[R](name, typeInt32, 4, place(at), putWiden, loadNarrow).required()
}

// number16 is an int16 column; 0 is null.
func number16[R any](name string, at func(*R) *int16) field[R] {
	return leaf[R](name, typeInt16, 2, place(at), putCode16, loadCode16)
}

// weight is a float64 column without nulls.
func weight[R any](name string, at func(*R) *float64) field[R] {
	return leaf[R](name, typeFloat64, 8, place(at), put64, load64).required()
}

// group is a struct of fields; the struct itself is never null.
func group[R any](name string, fields ...field[R]) field[R] {
	specs := specsOf(fields)
	s := shape{name: name, typ: typeStruct, nullable: true, dict: noDict, children: shapesOf(specs)}
	return field[R]{spec{shape: s, put: putGroup, bind: bindGroup, fields: specs}}
}

// list is a column of lists; nil is null, an empty list is not. Rows that were read alias
// the elements of their block.
func list[R, E any](name string, at func(*R) *[]E, elem field[E]) field[R] {
	specs := []spec{elem.spec}
	p := place(at)
	s := shape{name: name, typ: typeList, nullable: true, dict: noDict, children: shapesOf(specs)}
	put := putListOf(unsafe.Sizeof(*new(E)))
	return field[R]{spec{shape: s, at: p, guard: guardWord, guardAt: p, put: put, bind: bindList[E], fields: specs}}
}

// floats is a list of float32, which is written at once: its elements are smaller than the
// word that a program reads to test for null.
func floats[R any](name string, at func(*R) *[]float32) field[R] {
	f := list(name, at, leaf[float32]("item", typeFloat32, 4, 0, put32, load32))
	f.put, f.bind = putFloats, bindFloats
	return f
}

func specsOf[R any](fields []field[R]) []spec {
	out := make([]spec, len(fields))
	for i := range fields {
		out[i] = fields[i].spec
	}
	return out
}

func shapesOf(specs []spec) []*shape {
	out := make([]*shape, len(specs))
	for i := range specs {
		out[i] = &specs[i].shape
	}
	return out
}
