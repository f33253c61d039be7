// Package window measures, inside a service, how its upstream nodes have done in the last
// few seconds, so that rules can act on it at once: what a monitoring system reports of the
// last minute comes a minute late.
//
// Steps:
//
//  1. [New] with the span of the window.
//  2. [Window.Observe] after each call to a node: how long it took, and whether it failed.
//  3. [Window.Read] before a decision, and [Stats.Attributes] for the rules: for a window
//     of ten seconds local.error_rate_10s, local.requests_10s, local.latency_p50_ms_10s
//     and so on. Give them to the recorder as any other attribute, and a replay sees what
//     the decision saw.
//  4. [Breaker] on top of it, where a node that fails is to be left alone for a while.
//
// A window is a ring of buckets: it holds what happened in the current bucket and the ones
// before it, so its true length is between span minus one bucket and span. Latencies are
// kept in a histogram with eight steps an octave, so that a quantile is at most 12.5 %
// above the true one and never below it. Nodes that have been silent for a window are
// forgotten. The package starts no goroutine and keeps no history.
package window
