// Package backendtest checks that a [decision.Backend] keeps the rules that the rest
// of clefbench relies on, as testing/slogtest does for slog handlers. An engine that
// passes can be replayed, recorded and scored without a special case.
//
// Steps: make a few requests that the backend can answer (with attributes, and best
// with more than one outcome among them), and call [Run] from a test:
//
//	func TestBackend(t *testing.T) {
//		backendtest.Run(t, func(t *testing.T) decision.Backend { return open(t) }, backendtest.Cases{
//			Requests: requests,
//			File:     true,
//		})
//	}
//
// Run the test with -race too: concurrent use is one of the checks. [Check] gives the
// same findings as errors, for use without a *testing.T.
//
// The suite does not judge whether an answer is right, how fast it came or how much
// memory it took; it checks the contract only. A rule that the backend's own
// capabilities do not promise (determinism, for one) is not held against it.
package backendtest
