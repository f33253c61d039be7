// Two replays under one seed must give the same accuracy to the last bit; what was
// timed may differ.
import { readFileSync } from "node:fs";

const [a, b] = process.argv.slice(2).map((name) =>
  JSON.parse(readFileSync(name, "utf8")).backends.map((x) => ({
    name: x.name,
    accuracy: x.categories.accuracy,
    counts: x.counts,
    confusion: x.confusion,
  })));
if (a.length < 2 || JSON.stringify(a) !== JSON.stringify(b)) {
  console.error("two replays under one seed differ", JSON.stringify(a), JSON.stringify(b));
  process.exit(1);
}
if (a.some((x) => !(x.accuracy.value > 0))) {
  console.error("no accuracy to compare", JSON.stringify(a));
  process.exit(1);
}
console.log(`${a.length} backends: the same accuracy to the last bit`);
