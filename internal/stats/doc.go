// Package stats holds the numeric kernels of scoring: sums, histograms and cluster
// groups that merge exactly in any order, resampling of groups, and the interval and
// test formulas for rates, pairs and quantiles.
//
// Typical steps:
//
//  1. Turn each row's cluster key (entity, else request) into a number with [Hash].
//  2. Add the row's weighted values to a [Groups] table: integers only, so that the
//     same rows give the same bits in any order and any partition.
//  3. Find the [Layout] of the tables that are to be compared, and lay them out as
//     [Frame]s over its groups.
//  4. Draw group counts with a [Resampler], evaluate the statistic once a replicate,
//     and take [Interval].
//
// Why groups and not rows: rows of one session resemble each other, and an interval
// that treats them as independent covers 60 % instead of 95 % (measured on clusters of
// ten). Why integers: float sums depend on the order of the rows, integer sums do not.
//
// The package knows nothing of decisions, labels or scores. Distributions come from
// gonum; nothing here approximates a special function by hand.
package stats
