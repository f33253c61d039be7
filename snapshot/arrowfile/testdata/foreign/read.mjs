// Prints the rows of a segment as JSON lines, read by the JavaScript implementation of
// Arrow: numbers as decimal text, bytes as hex, nulls as null. It knows nothing of the
// schema. Usage: node read.mjs FILE
import { readFileSync } from 'node:fs';
import { tableFromIPC, compressionRegistry, CompressionType, DataType, TimeUnit } from 'apache-arrow';
import { decompress } from 'fzstd';

compressionRegistry.set(CompressionType.ZSTD, {
  // A copy: the decoder's output may be a view at an offset that is no multiple of 8.
  decode: (bytes) => new Uint8Array(decompress(bytes)),
});

const hex = (bytes) => Buffer.from(bytes).toString('hex');
const number = (v) => (Object.is(v, -0) ? '-0' : String(v));

// value reads row i of one chunk of data; it goes below the library's getters where they
// lose digits (timestamps become milliseconds).
function value(vector, i) {
  if (!vector.isValid(i)) return null;
  const type = vector.type;
  if (DataType.isTimestamp(type)) {
    if (type.unit !== TimeUnit.NANOSECOND || type.timezone !== 'UTC') throw new Error(`unexpected ${type}`);
    return String(vector.data[0].values[i]);
  }
  if (DataType.isStruct(type)) {
    return Object.fromEntries(type.children.map((f, k) => [f.name, value(vector.getChildAt(k), i)]));
  }
  if (DataType.isList(type)) {
    const [from, to] = [vector.data[0].valueOffsets[i], vector.data[0].valueOffsets[i + 1]];
    const items = vector.getChildAt(0);
    return Array.from({ length: to - from }, (_, k) => value(items, from + k));
  }
  const v = vector.get(i);
  if (v === null || typeof v === 'string' || typeof v === 'boolean') return v;
  if (v instanceof Uint8Array) return hex(v);
  return number(v);
}

const table = tableFromIPC(readFileSync(process.argv[2]));
for (const batch of table.batches) {
  const columns = batch.schema.fields.map((f, k) => [f.name, batch.getChildAt(k)]);
  for (let i = 0; i < batch.numRows; i++) {
    process.stdout.write(JSON.stringify(Object.fromEntries(columns.map(([name, c]) => [name, value(c, i)]))) + '\n');
  }
}
