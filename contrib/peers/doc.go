// Package peers measures the recorder and its files beside what else a service could keep
// its decisions with: structured logs with zstd, Parquet, the Arrow library's own writer
// and reader, zstd alone.
//
// Every peer gets the same rows and keeps the same filled fields; a test reads back what
// each wrote. Cases take turns, round after round; what is compared is processor time
// (garbage collection included) within one round, and what is reported is the median of
// the rounds' ratios with their quartiles. Absolute times hold for one machine; ratios are
// what the goals are about.
//
//  1. [NewTraffic] makes the rows.
//  2. [HandOff], [Encode] and [Read] run one group of cases each and return a [Report].
//  3. [Report.WriteTo] prints it as a Markdown table, with the goal of each ratio.
//
// It is a module of its own, so that no peer stands among the recorder's dependencies. The
// decision log of OPA is in a further one, contrib/peers/opa, since it takes minutes to
// compile. Not measured here are disks (everything is written to memory or nowhere),
// HTTP and parallel encoding.
package peers
