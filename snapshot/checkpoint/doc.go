// Package checkpoint signs how far a chain of segments had come, and verifies it later.
//
// A segment refers to the digest of the one before it, so that the digest of the last one
// stands for all. Whoever can write the files can make a new chain; with a checkpoint they
// need the private key, too. The format is a signed note with Ed25519 signatures, as
// https://c2sp.org/signed-note has it, with a text of our own: docs/formats/checkpoint.md.
//
// The steps: [ParsePrivateKey], [Checkpoint.Sign] when a segment was sealed; later
// [ParsePublicKey] and [Open]. Holding the segments against the heads of a checkpoint is
// the work of package datasets. Keys are never printed, and errors do not quote them.
package checkpoint
