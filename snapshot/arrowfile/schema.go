package arrowfile

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"
)

// dataType is the physical type of a column, as far as this package tells them apart.
type dataType uint8

const (
	// typeOther is a type that no column of ours has; such columns are stepped over.
	typeOther dataType = iota
	typeBool
	typeInt8
	typeInt16
	typeInt32
	typeInt64
	typeFloat32
	typeFloat64
	typeTimestamp
	typeFixed
	typeUTF8
	typeBinary
	typeList
	typeStruct
)

var typeNames = [...]string{"a foreign type", "bool", "int8", "int16", "int32", "int64", "float32", "float64",
	"timestamp[ns, UTC]", "fixed_size_binary", "utf8", "binary", "list", "struct"}

func (t dataType) String() string { return typeNames[t] }

// bytes is the width of the numeric types.
func (t dataType) bytes() int {
	switch t {
	case typeInt8:
		return 1
	case typeInt16:
		return 2
	case typeInt32, typeFloat32:
		return 4
	case typeInt64, typeFloat64, typeTimestamp:
		return 8
	}
	return 0
}

// noDict marks a column without a dictionary.
const noDict = -1

// shape is one column of the schema: the same description serves the writer, the reader
// and the schema message.
type shape struct {
	name string
	typ  dataType
	// width is the number of bytes of a value of fixed width; 0 for bool.
	width    int
	nullable bool
	// dict is the dictionary's id, or noDict. A column with a dictionary has the type of
	// its values, and index is the width of its codes.
	dict     int64
	index    int
	children []*shape
	// skipBuffers is the number of buffers to step over when the column is not wanted;
	// variadic columns have further ones, whose number each batch tells.
	skipBuffers int
	variadic    bool
}

// arrowType is the column's type in terms of the Arrow library.
func (s *shape) arrowType() arrow.DataType {
	switch {
	case s.dict != noDict:
		return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String}
	case s.typ == typeFixed:
		return &arrow.FixedSizeBinaryType{ByteWidth: s.width}
	case s.typ == typeList:
		return arrow.ListOfField(s.children[0].arrowField())
	case s.typ == typeStruct:
		return arrow.StructOf(arrowFields(s.children)...)
	}
	return map[dataType]arrow.DataType{
		typeBool: arrow.FixedWidthTypes.Boolean, typeInt8: arrow.PrimitiveTypes.Int8, typeInt16: arrow.PrimitiveTypes.Int16,
		typeInt32: arrow.PrimitiveTypes.Int32, typeInt64: arrow.PrimitiveTypes.Int64,
		typeFloat32: arrow.PrimitiveTypes.Float32, typeFloat64: arrow.PrimitiveTypes.Float64,
		typeTimestamp: arrow.FixedWidthTypes.Timestamp_ns, // nanoseconds, UTC
		typeUTF8:      arrow.BinaryTypes.String, typeBinary: arrow.BinaryTypes.Binary,
	}[s.typ]
}

func (s *shape) arrowField() arrow.Field {
	return arrow.Field{Name: s.name, Type: s.arrowType(), Nullable: s.nullable}
}

func arrowFields(shapes []*shape) []arrow.Field {
	out := make([]arrow.Field, len(shapes))
	for i, s := range shapes {
		out[i] = s.arrowField()
	}
	return out
}

// numberDicts gives the dictionaries their ids, depth first, as the Arrow library does.
func numberDicts(shapes []*shape, next int64) int64 {
	for _, s := range shapes {
		if s.dict != noDict {
			s.dict = next
			next++
		}
		next = numberDicts(s.children, next)
	}
	return next
}

// eosLen is the length of the end-of-stream marker that the library appends.
const eosLen = 8

// schemaMessage returns the encapsulated schema message, made by the Arrow library.
func schemaMessage(shapes []*shape, keys, values []string) ([]byte, error) {
	meta := arrow.NewMetadata(keys, values)
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(arrow.NewSchema(arrowFields(shapes), &meta)))
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("schema message: %w", err)
	}
	return buf.Bytes()[:buf.Len()-eosLen], nil
}

// The codes of the Arrow format's type union that this package tells apart.
const (
	fbNull = iota + 1
	fbInt
	fbFloat
	fbBinary
	fbUTF8
	fbBool
	fbDecimal
	fbDate
	fbTime
	fbTimestamp
	fbInterval
	fbList
	fbStruct
	fbUnion
	fbFixedBinary
	fbFixedList
	fbMap
	fbDuration
	fbLargeBinary
	fbLargeUTF8
	fbLargeList
	fbRunEnd
	fbBinaryView
	fbUTF8View
	fbListView
	fbLargeListView
)

// maxNesting bounds the depth of a schema; ours has three levels.
const maxNesting = 16

// schemaParser reads the fields of a Schema table that may be hostile.
type schemaParser struct {
	f *flat
	// budget bounds the number of fields: tables may be referred to more than once, so
	// that a small file could describe an endless schema.
	budget int
}

// parseSchema reads the Schema table of a schema message: its columns and metadata.
func parseSchema(schema table) ([]*shape, map[string]string, error) {
	p := &schemaParser{f: schema.f, budget: len(schema.f.b) / 16}
	if schema.i16(0, 0) != 0 {
		return nil, nil, fmt.Errorf("%w: big-endian file", ErrSchema)
	}
	shapes, err := p.fields(schema, 1, 0)
	if err != nil {
		return nil, nil, err
	}
	meta := schema.keyValues(2)
	return shapes, meta, schema.f.err
}

func (p *schemaParser) fields(t table, slot, depth int) ([]*shape, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("%w: nested deeper than %d", ErrSchema, maxNesting)
	}
	n, at := t.tables(slot)
	if p.budget -= n; p.budget < 0 {
		return nil, fmt.Errorf("%w: more fields than bytes", ErrSchema)
	}
	out := make([]*shape, 0, n)
	for i := range n {
		s, err := p.field(at(i), depth)
		if err != nil {
			return nil, err
		}
		if p.f.err != nil {
			return nil, p.f.err
		}
		out = append(out, s)
	}
	return out, nil
}

func (p *schemaParser) field(t table, depth int) (*shape, error) {
	s := &shape{name: t.str(0), nullable: t.u8(1) != 0, dict: noDict}
	if err := s.parseType(t.u8(2), t.sub(3)); err != nil {
		return nil, err
	}
	var err error
	if s.children, err = p.fields(t, 5, depth+1); err != nil {
		return nil, err
	}
	if d := t.sub(4); d.ok() {
		s.parseDict(d)
	}
	if s.typ == typeList && len(s.children) != 1 {
		return nil, fmt.Errorf("%w: list %q has %d children", ErrSchema, s.name, len(s.children))
	}
	return s, nil
}

// parseDict reads the dictionary encoding of a field whose type is that of the values. One
// of other values than text, or with codes that no column of ours has, is stepped over as
// an array of its codes: what its values are made of stands in no batch.
func (s *shape) parseDict(d table) {
	index, signed := 4, true
	if ix := d.sub(1); ix.ok() {
		index, signed = int(ix.i32(0, 0))/8, ix.u8(1) != 0
	}
	id := d.i64(0, 0)
	if id >= 0 && s.typ == typeUTF8 && signed && (index == 1 || index == 2 || index == 4) {
		s.dict, s.index = id, index
		return
	}
	*s = shape{name: s.name, nullable: s.nullable, dict: noDict, skipBuffers: 2}
}

// buffersOf is the number of buffers that an array of a type code has without its
// children; false for a type that is not known.
func buffersOf(code byte, t table) (int, bool) {
	switch code {
	case fbNull, fbRunEnd:
		return 0, true
	case fbUnion:
		return 1 + int(t.i16(0, 0)&1), true // dense unions have offsets
	case fbListView, fbLargeListView:
		return 3, true
	case fbStruct, fbFixedList:
		return 1, true
	case fbInt, fbFloat, fbBool, fbDecimal, fbDate, fbTime, fbTimestamp, fbInterval, fbDuration, fbFixedBinary,
		fbList, fbMap, fbLargeList, fbBinaryView, fbUTF8View:
		return 2, true
	case fbBinary, fbUTF8, fbLargeBinary, fbLargeUTF8:
		return 3, true
	}
	return 0, false
}

// parseType maps the type table. What is not one of our types stays typeOther.
func (s *shape) parseType(code byte, t table) error {
	n, ok := buffersOf(code, t)
	if !ok {
		return fmt.Errorf("%w: column %q has type code %d, which is not known and cannot be stepped over", ErrSchema, s.name, code)
	}
	s.skipBuffers, s.variadic = n, code == fbBinaryView || code == fbUTF8View
	switch code {
	case fbBool:
		s.typ = typeBool
	case fbUTF8:
		s.typ = typeUTF8
	case fbBinary:
		s.typ = typeBinary
	case fbList:
		s.typ = typeList
	case fbStruct:
		s.typ = typeStruct
	default:
		s.parseWidth(code, t)
	}
	return nil
}

// parseWidth maps the types of fixed width.
func (s *shape) parseWidth(code byte, t table) {
	switch code {
	case fbInt:
		s.parseInt(t)
	case fbFloat:
		switch t.i16(0, 0) {
		case 1:
			s.typ, s.width = typeFloat32, 4
		case 2:
			s.typ, s.width = typeFloat64, 8
		}
	case fbTimestamp:
		if t.i16(0, 0) == 3 && t.str(1) == "UTC" {
			s.typ, s.width = typeTimestamp, 8
		}
	case fbFixedBinary:
		if w := t.i32(0, 0); w > 0 && w <= 1<<16 {
			s.typ, s.width = typeFixed, int(w)
		}
	}
}

func (s *shape) parseInt(t table) {
	bits, signed := t.i32(0, 0), t.u8(1) != 0
	types := map[int32]dataType{8: typeInt8, 16: typeInt16, 32: typeInt32, 64: typeInt64}
	if typ, ok := types[bits]; ok && signed {
		s.typ, s.width = typ, int(bits)/8
	}
}
