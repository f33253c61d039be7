// Package metrics says which figures a recording has to be watched by: their names, their
// closed sets of labels, and their values at one moment. It knows no monitoring system;
// recorder/prometheus and contrib/otel hand its figures to one.
//
// Steps:
//
//  1. Fill [Sources] with the recorder, and where there are any with the segments that it
//     writes and the uploads of them.
//  2. [Sources.Metrics] lists what they can tell.
//  3. [Sources.Read] reads it all, whenever somebody asks. Nothing is pushed: between two
//     readings watching costs nothing.
//
// [Blind] is the one number to alert on: which share of what should have been recorded
// was not. The package keeps no history and computes no rates.
package metrics
