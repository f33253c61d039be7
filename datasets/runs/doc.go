// Package runs writes and reads run directories: what a replay gave.
//
// Steps: [Create] takes outcomes and labels as they come, [Writer.Close] seals them and puts
// the run in its place, as a whole; [Open] checks every file against the manifest, and
// [Run.Rows] pairs labels and outcomes for scoring. docs/formats/run.md has the files.
//
// A run holds all that scoring needs. It refers to rows by segment and row, to pair its own
// files, and never looks for the segments themselves: they may be compacted, thinned out or
// gone. The package replays nothing and scores nothing.
package runs
