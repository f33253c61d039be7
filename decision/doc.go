// Package decision is the vocabulary that every part of clefbench shares: what a
// backend is asked ([Request]), what it answers ([Response], [Decision]), and what
// a backend is ([Backend] and its optional companions [Explainer] and [Warmer]).
//
// Typical steps:
//
//  1. Build a [Schema] of typed attributes once; requests point at it.
//  2. Fill a [Request]: scenario, attributes, questions with their allowed actions,
//     the clock and the seed that the decision may use.
//  3. Call [Backend.Decide] with a [Response] that is reused from call to call.
//  4. Call [Response.Check], which turns an answer that the request did not allow
//     into an error outcome; it never repairs one.
//
// The package imports the standard library only, so that a service which embeds a
// backend or the recorder links nothing else. It holds no engine, reads no file and
// keeps no state. A Request deliberately has no room for what production chose, how
// long it took or what it scored: a backend that sees a Request cannot peek at the
// recorded answer.
package decision
