package arrowfile

import (
	"fmt"
	"math"
	"time"
	"unsafe"

	"github.com/clefbench/clefbench/decision"
)

// getter reads row i of one column into a row.
type getter[R any] func(i int, r *R)

// field binds a column to a place in a row of type R: one description for the writer
// (put), the reader (bind) and the schema (shape).
type field[R any] struct {
	shape shape
	put   func(c *column, r *R)
	// bind prepares the reading of one batch; the getter is called for every row.
	bind func(v *vector) (getter[R], error)
}

// required makes the column one that has no nulls and that a file must have.
func (f field[R]) required() field[R] {
	f.shape.nullable = false
	return f
}

// leaf is a field without children.
func leaf[R any](name string, typ dataType, width int, put func(*column, *R), get func(*vector, int, *R)) field[R] {
	s := shape{name: name, typ: typ, width: width, nullable: true, dict: noDict}
	return field[R]{s, put, func(v *vector) (getter[R], error) {
		if err := v.is(&s); err != nil {
			return nil, err
		}
		return func(i int, r *R) {
			if v.ok(i) {
				get(v, i, r)
			}
		}, nil
	}}
}

// text is a utf8 column; the empty string is null.
func text[R any, S ~string](name string, at func(*R) *S) field[R] {
	return leaf(name, typeUTF8, 0,
		func(c *column, r *R) {
			if s := *at(r); s != "" {
				c.text(string(s))
			}
		},
		func(v *vector, i int, r *R) { *at(r) = S(v.str(i)) })
}

// label is a column of a closed label set: codes with a dictionary. Readers take plain
// utf8 as well, as they take dictionaries for text.
func label[R any, S ~string](name string, at func(*R) *S) field[R] {
	f := text(name, at)
	f.shape.dict, f.shape.index = 0, 2
	f.put = func(c *column, r *R) {
		if s := *at(r); s != "" {
			c.label(string(s))
		}
	}
	return f
}

// enum is a label that stands for a number of a closed set; 0 is null.
func enum[R any, E ~uint8](name string, format func(E) string, parse func(string) (E, error), at func(*R) *E) field[R] {
	f := label(name, func(*R) *string { return nil })
	f.put = func(c *column, r *R) {
		if e := *at(r); e != 0 {
			c.label(format(e))
		}
	}
	want := f.shape
	f.bind = func(v *vector) (getter[R], error) {
		if err := v.is(&want); err != nil {
			return nil, err
		}
		codes, table, err := parseLabels(v, parse)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", name, err)
		}
		return func(i int, r *R) {
			if v.ok(i) {
				*at(r) = table[codes(i)]
			}
		}, nil
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
	return leaf(name, typeBinary, 0,
		func(c *column, r *R) {
			if b := *at(r); b != nil {
				c.bytes(b)
			}
		},
		func(v *vector, i int, r *R) { *at(r) = v.slice(i) })
}

// uuid is an id column; the zero id is null.
func uuid[R any](name string, at func(*R) *decision.ID) field[R] {
	return leaf(name, typeFixed, 16,
		func(c *column, r *R) {
			if id := at(r); !id.IsZero() {
				c.fixed(id[:])
			}
		},
		func(v *vector, i int, r *R) { *at(r) = decision.ID(v.fixed(i)) })
}

// hash is a column of a fixed number of bytes; at returns the array as a slice, and
// whether it is present.
func hash[R any](name string, width int, at func(*R) ([]byte, *bool)) field[R] {
	return leaf(name, typeFixed, width,
		func(c *column, r *R) {
			if b, set := at(r); *set {
				c.fixed(b)
			}
		},
		func(v *vector, i int, r *R) {
			b, set := at(r)
			copy(b, v.fixed(i))
			*set = true
		})
}

// digest is a SHA-256 column; all zeroes is null.
func digest[R any](name string, at func(*R) *[32]byte) field[R] {
	return leaf(name, typeFixed, 32,
		func(c *column, r *R) {
			if d := at(r); *d != [32]byte{} {
				c.fixed(d[:])
			}
		},
		func(v *vector, i int, r *R) { *at(r) = [32]byte(v.fixed(i)) })
}

// instant is a timestamp in nanoseconds, UTC; the zero time is null.
func instant[R any](name string, at func(*R) *time.Time) field[R] {
	return leaf(name, typeTimestamp, 8,
		func(c *column, r *R) {
			if t := at(r); !t.IsZero() {
				c.u64(uint64(t.UnixNano()))
			}
		},
		func(v *vector, i int, r *R) { *at(r) = time.Unix(0, int64(v.u64(i))).UTC() })
}

// optional is a column that is null where an Opt is not set.
func optional[R, T any](name string, typ dataType, at func(*R) *decision.Opt[T],
	put func(*column, T), get func(*vector, int) T) field[R] {
	return leaf(name, typ, typ.bytes(),
		func(c *column, r *R) {
			if o := at(r); o.Set {
				put(c, o.V)
			}
		},
		func(v *vector, i int, r *R) { *at(r) = decision.Some(get(v, i)) })
}

func optInt64[R any, T ~int64](name string, at func(*R) *decision.Opt[T]) field[R] {
	return optional(name, typeInt64, at,
		func(c *column, v T) { c.u64(uint64(v)) },
		func(v *vector, i int) T { return T(v.u64(i)) })
}

func optInt8[R any](name string, at func(*R) *decision.Opt[int8]) field[R] {
	return optional(name, typeInt8, at,
		func(c *column, v int8) { c.u8(uint8(v)) },
		func(v *vector, i int) int8 { return int8(v.data[i]) })
}

func optFloat64[R any](name string, at func(*R) *decision.Opt[float64]) field[R] {
	return optional(name, typeFloat64, at,
		func(c *column, v float64) { c.f64(v) },
		func(v *vector, i int) float64 { return v.f64(i) })
}

func optFloat32[R any](name string, at func(*R) *decision.Opt[float32]) field[R] {
	return optional(name, typeFloat32, at,
		func(c *column, v float32) { c.f32(v) },
		func(v *vector, i int) float32 { return v.f32(i) })
}

func optBool[R any](name string, at func(*R) *decision.Opt[bool]) field[R] {
	return optional(name, typeBool, at,
		func(c *column, v bool) { c.bit(v) },
		func(v *vector, i int) bool { return v.bit(i) })
}

// number64 is an int64 column without nulls.
func number64[R any](name string, at func(*R) *int64) field[R] {
	return leaf(name, typeInt64, 8,
		func(c *column, r *R) { c.u64(uint64(*at(r))) },
		func(v *vector, i int, r *R) { *at(r) = int64(v.u64(i)) }).required()
}

// number32 is an int32 column without nulls.
func number32[R any, T ~int32 | ~uint16](name string, at func(*R) *T) field[R] {
	return leaf(name, typeInt32, 4,
		func(c *column, r *R) { c.u32(uint32(int32(*at(r)))) },
		func(v *vector, i int, r *R) { *at(r) = T(v.u32(i)) }).required()
}

// number16 is an int16 column; 0 is null.
func number16[R any](name string, at func(*R) *int16) field[R] {
	return leaf(name, typeInt16, 2,
		func(c *column, r *R) {
			if n := *at(r); n != 0 {
				c.u16(uint16(n))
			}
		},
		func(v *vector, i int, r *R) { *at(r) = int16(v.u16(i)) })
}

// weight is a float64 column without nulls.
func weight[R any](name string, at func(*R) *float64) field[R] {
	return leaf(name, typeFloat64, 8,
		func(c *column, r *R) { c.f64(*at(r)) },
		func(v *vector, i int, r *R) { *at(r) = v.f64(i) }).required()
}

// plainFloat32 is the element of a list of float32; NaN keeps its bits.
func plainFloat32(name string) field[float32] {
	return leaf(name, typeFloat32, 4,
		func(c *column, r *float32) { c.u32(math.Float32bits(*r)) },
		func(v *vector, i int, r *float32) { *r = v.f32(i) })
}

// group is a struct of fields; the struct itself is never null.
func group[R any](name string, fields ...field[R]) field[R] {
	s := shape{name: name, typ: typeStruct, nullable: true, dict: noDict, children: shapesOfFields(fields)}
	put := func(c *column, r *R) {
		c.begin()
		for i, k := range c.children {
			fields[i].put(k, r)
		}
	}
	bind := func(v *vector) (getter[R], error) {
		if err := v.is(&s); err != nil {
			return nil, err
		}
		gets, err := bindAll(fields, v.children)
		return func(i int, r *R) {
			if v.ok(i) {
				for _, get := range gets {
					get(i, r)
				}
			}
		}, err
	}
	return field[R]{s, put, bind}
}

// list is a column of lists; nil is null, an empty list is not. The elements of a batch
// are read at once, and rows alias them.
func list[R, E any](name string, at func(*R) *[]E, elem field[E]) field[R] {
	s := shape{name: name, typ: typeList, nullable: true, dict: noDict, children: shapesOfFields([]field[E]{elem})}
	put := func(c *column, r *R) {
		items := *at(r)
		if items == nil {
			return
		}
		c.begin()
		for i := range items {
			elem.put(c.children[0], &items[i])
			c.items++
		}
		c.close()
	}
	bind := func(v *vector) (getter[R], error) {
		if err := v.is(&s); err != nil {
			return nil, err
		}
		items, err := elements(v, elem)
		return func(i int, r *R) {
			if v.ok(i) {
				from, to := v.span(i)
				*at(r) = items[from:to:to]
			}
		}, err
	}
	return field[R]{s, put, bind}
}

// elements decodes the elements of a batch's lists into memory that the next batch of
// the same iteration reuses.
func elements[E any](v *vector, elem field[E]) ([]E, error) {
	items, _ := v.scratch.([]E)
	if v.n == 0 {
		return items, nil
	}
	_, n := v.span(v.n - 1)
	if n > maxBuffer/max(int(unsafe.Sizeof(items[0])), 1) {
		return nil, fmt.Errorf("column %q: %d elements in one batch", v.name, n)
	}
	if cap(items) < n || items == nil {
		items = make([]E, n)
	}
	items = items[:n]
	clear(items)
	v.scratch = items
	gets, err := bindAll([]field[E]{elem}, v.children)
	for _, get := range gets {
		for i := range items {
			get(i, &items[i])
		}
	}
	return items, err
}

func shapesOfFields[R any](fields []field[R]) []*shape {
	out := make([]*shape, len(fields))
	for i := range fields {
		out[i] = &fields[i].shape
	}
	return out
}

// bindAll binds fields to the columns of their names. Columns that are absent, not wanted
// or null throughout need no getter.
func bindAll[R any](fields []field[R], columns []*vector) ([]getter[R], error) {
	byName := make(map[string]*vector, len(columns))
	for _, v := range columns {
		byName[v.name] = v
	}
	var gets []getter[R]
	for i := range fields {
		f := &fields[i]
		v := byName[f.shape.name]
		if v == nil && !f.shape.nullable {
			return nil, fmt.Errorf("%w: no column %q", ErrSchema, f.shape.name)
		}
		if v == nil || v.skipped {
			continue
		}
		get, err := f.bind(v)
		if err != nil {
			return nil, err
		}
		if v.nulls < v.n || v.n == 0 {
			gets = append(gets, get)
		}
	}
	return gets, nil
}
