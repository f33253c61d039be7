// Package arrowfile keeps rows of package snapshot in files: standard Arrow IPC files,
// compressed with zstd, that other Arrow readers open and in which no changed byte goes
// unnoticed.
//
// Writing:
//
//  1. [Create] returns a [Writer] of snapshot segments in a directory; [CreateOutcomes]
//     and [CreateLabels] write one file each.
//  2. [Writer.Append] transposes a row into columns. Flush writes the pending rows as one
//     batch with one write call: what a returned Flush covers is acknowledged, and
//     survives a kill of the process.
//  3. Segments rotate by size, by age, with a new capture list and with a label that the
//     dictionaries at the segment's head do not hold. Sealing writes the footer, syncs,
//     renames NAME.arrow.open to NAME.arrow and syncs the directory.
//
// Reading:
//
//  1. [Open] checks the digest of every byte before anything is decoded.
//  2. [File.Snapshots], [File.Outcomes] and [File.Labels] yield the rows; named columns
//     restrict what is decompressed.
//  3. [Recover] seals what a killed writer left behind, [Verify] says whether a file is
//     whole: digests, row counts, ledger, every row valid.
//
// The format is described in docs/formats/segment.md. The package builds and parses the
// IPC messages itself: the reader of the Arrow library checks neither zstd's checksums
// nor bounds, so it never sees a byte here; the library describes the schema and is the
// oracle of the tests.
//
// The package does not sample, redact or decide what is recorded, merges no files and
// keeps no index: recorder and datasets do.
package arrowfile
