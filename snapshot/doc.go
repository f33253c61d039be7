// Package snapshot holds the rows that clefbench keeps: a [Snapshot] is one recorded
// production decision with everything needed to replay and audit it, an [Outcome] is
// what a backend answered for one snapshot in one replay, a [Label] is the truth that
// came later.
//
// A Snapshot embeds nothing of a backend's code: [Snapshot.Request] builds the
// decision.Request that a backend may see, and leaves out what production chose, how
// long it took and what it scored.
//
// The package imports the standard library and package decision only. It reads and
// writes no file: package snapshot/arrowfile does, and its schema version 1 has one
// column for every field here.
package snapshot
