// Package flash decides by table look-up: a matrix of actions over a few dimensions,
// each a numeric attribute cut into ranges, a text attribute with listed values, or a
// classified attribute, compiled to a `.cfb` file of at most 64 KiB.
//
// Steps: [CompileMatrix] turns the matrix JSON into `.cfb` bytes ([Check] gives all its
// findings, warnings included); [Open] verifies the bytes and gives a [Table], which is
// a [decision.Backend]. The JSON and the binary format are described in
// docs/formats/cfb.md.
//
// The index is dense: each cell of the product of the dimensions has an action, and a
// key is a number in a mixed radix. So a look-up is exact (no fingerprint, no false
// hit), costs a multiplication a dimension, and the file is 1 or 2 bytes a cell. A hash
// table would pay off only for a sparse table, and a matrix file has no holes.
//
// An attribute that is absent, null or NaN, and a value that no range or list holds, go
// to bins of their own, which have no cells unless the mapping assigns them a value. A
// key with such a bin is a miss: the fallback action where the matrix names one, else
// the decision is abstain, never a default action. Decide reads no clock, does no I/O
// and allocates nothing.
package flash
