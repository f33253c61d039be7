// Package spool brings sealed segments from a local directory into a bucket, one object a
// segment, and deletes nothing locally before the bucket is known to hold it.
//
// Steps:
//
//  1. [Open] takes the directory that a recorder writes segments to, and a bucket:
//     file:///dir or s3://bucket/prefix. It seals what killed writers left open.
//  2. A goroutine looks for sealed segments and writes each as
//     full/dt=YYYY-MM-DD/SERVICE/NAME.arrow, only if there is no such object. Whatever
//     goes wrong, the object is read back: the same bytes mean done, other bytes are a
//     [ConflictError], and no object means another attempt after a while.
//  3. [Spool.Wrap] puts a limit on a recorder's sink: when more bytes wait than
//     Options.MaxBytes, rows are refused under the reason "spool-full".
//  4. [Spool.Close] uploads what is there, until its deadline. What is left waits in the
//     directory for the next Open.
//
// Names of segments are unique (host, boot, sequence), and writing the same one twice is
// harmless. So any number of processes may share a directory or a bucket, and there is no
// coordinator; a lock on the segment saves two processes of one machine the double work.
//
// A row that was sent to a recorder again after a crash is in the bucket twice: rows that
// repeat carry the same decision id. The package does not look into rows, does not list or
// expire what is in the bucket, and does not read data sets from it. docs/formats/spool.md
// has the layout and what a bucket must grant.
package spool
