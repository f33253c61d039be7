// Prints the rows of a segment as JSON lines, read by polars (which is written in Rust and
// brings zstd of its own), in the form of read.mjs. It knows nothing of the schema.
// Usage: node polars.mjs FILE
import { readFileSync } from 'node:fs';
import pl from 'nodejs-polars';

const number = (v) => (v === null ? null : Object.is(v, -0) ? '-0' : String(v));

// typeOf names a column's type; the library has no name for binary, and says so in other
// words in each version.
function typeOf(series) {
  try {
    return series.dtype;
  } catch (e) {
    if (/Binary|not yet implemented/.test(e.message)) return { variant: 'Binary' };
    throw e;
  }
}

// values returns a column as an array. What JavaScript has no exact value for (64-bit
// integers, instants) becomes text within polars.
function values(series) {
  const type = typeOf(series);
  switch (type.variant) {
    case 'Binary':
      return series.cast(pl.List(pl.UInt8)).toArray().map((v) => v && Buffer.from(v).toString('hex'));
    case 'Datetime':
      if (!/^\w+\(Datetime\(ns,UTC\)\)$/.test(String(type))) throw new Error(`unexpected ${type}`);
      return series.cast(pl.Int64).cast(pl.Utf8).toArray();
    case 'Int64':
      return series.cast(pl.Utf8).toArray();
    case 'List':
      return lists(series);
    case 'Struct':
      return structs(series);
    case 'Bool': case 'String': case 'Categorical':
      return series.toArray();
    case 'Int8': case 'Int16': case 'Int32': case 'Float32': case 'Float64':
      return series.toArray().map(number);
    default:
      throw new Error(`unexpected ${type}`);
  }
}

function structs(series) {
  const isNull = series.isNull().toArray();
  const fields = series.struct.fields.map((name) => [name, values(series.struct.field(name))]);
  return isNull.map((none, i) => (none ? null : Object.fromEntries(fields.map(([name, v]) => [name, v[i]]))));
}

// lists takes the elements out, where an empty list and a null both leave one null.
function lists(series) {
  const lengths = series.list.lengths().toArray();
  const items = values(series.explode());
  let at = 0;
  return lengths.map((n) => {
    const from = at;
    at += n || 1;
    return n === null ? null : items.slice(from, from + n);
  });
}

// Given a path that does not end in .ipc, readIPC takes the path itself for the content.
const frame = pl.readIPC(readFileSync(process.argv[2]));
const columns = frame.columns.map((name) => [name, values(frame.getColumn(name))]);
for (let i = 0; i < frame.height; i++) {
  process.stdout.write(JSON.stringify(Object.fromEntries(columns.map(([name, v]) => [name, v[i]]))) + '\n');
}
