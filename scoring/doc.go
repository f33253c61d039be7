// Package scoring turns what backends answered, and the labels that came later, into a
// scorecard: accuracy, latency, cost and auditability, each 0 to 100 on absolute
// anchors, a weighted total, intervals, paired comparisons, and the reasons for every
// number that is missing.
//
// Typical steps:
//
//  1. Take a [Profile]: [Preset], or a file through [ParseProfile]; add the data set's
//     tasks ([Profile.AddTasks]) and a price book ([ParsePrices]). [Anchors] freezes what
//     a data set's labels say, so that parts of it are held to the same.
//  2. [Merge] the outcomes of the lanes and the labels, which stand in the order of
//     their snapshots, into rows.
//  3. [Score] them in one pass. Shards of a run are collected apart ([Collect]), merged
//     ([Collection.Merge]) and evaluated ([Collection.Scorecard]).
//  4. Give the [Scorecard] to package reports. A published one is checked by [Recompute]
//     (the arithmetic alone) or by scoring its run again and taking the [Diff].
//
// # What a number rests on
//
// Every row weighs 1/keep_prob. A backend's own score is over all decisions it was
// offered: what it did not answer earns the worst utility and is a latency miss. A pair
// uses the decisions that both could replay. No backend's presence moves another's
// score, and no formula compares a backend with the field.
//
// A category of a run is the mean of its scenarios' categories by decisions, or by the
// profile's scenario weights. Missing evidence is NA with a reason, never 0, and makes
// the total NA where the category has weight.
//
// Intervals are 95 % and come from resampling groups of clusters (a cluster is an
// entity, else a request): the clusters themselves up to 200, 1,024 hashed groups
// beyond, 128 where latency quantiles enter, none below 20 clusters. U_base, U_top and
// the base rates are anchors: they are taken as given and not resampled. All statistics
// of one draw belong together, so the interval of a total or of a difference follows
// from joint draws. In simulations of clustered data they cover 93 to 98 % (package
// tests).
//
// All sums are integers in fixed point: the same rows give the same bits, in any order
// and any partition.
//
// # Limits
//
// Accuracy knows one rung of evidence: labels from which the utility of every action
// follows (L1). Faithfulness of explanations (q4) is not measured. The package reads no
// files of rows, prints nothing and passes no verdict of a gate.
package scoring
