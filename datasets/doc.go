// Package datasets opens, describes, labels and verifies data sets on disk, and carries the embedded demo: two small real data sets, one generator with an
// exact ceiling, and the strategies that were made from their training halves.
//
// A data set is a directory of sealed segments (NAME.arrow), with one label file per
// segment (NAME.labels.arrow), dataset.yaml (what each scenario is about) and artefacts/
// (strategy files by content hash). Typical steps:
//
//  1. [Open] directories, files or globs; warnings travel with the [Dataset].
//  2. Read [Dataset.Snapshots] and [Dataset.Labels], which are in the same order
//     (snapshot.Ref), so that pairing is a merge.
//  3. [AttachLabels] writes the truth that came later and freezes each scenario's
//     baseline in dataset.yaml; [WriteManifest] writes the rest of that file.
//  4. [Describe], [List] and [Verify] look at a data set as a whole; findings are data.
//  5. [Dataset.Export] prints rows with every column as JSON lines or CSV; [Retain] writes
//     a copy in which old requests are thinned out, with weights that keep estimates right.
//
// [Demo] yields labelled examples, each marked as training or test; [DemoFiles] holds the
// strategies; [EdgeRouting] generates edge-routing decisions whose right answers are
// known in distribution.
//
// The package decides nothing, replays nothing and scores nothing: it reads files that
// were written by others and never changes a sealed segment.
package datasets
