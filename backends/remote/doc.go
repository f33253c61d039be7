// Package remote speaks `POST /v1/decide`: a client that makes any such service a
// [decision.Backend], and a handler that offers any backend as such a service.
//
// Steps for the client: [NewClient] with the service's base URL (or [ParseOptions] from
// a specification), then Decide. Steps for the server: [Handler] gives an http.Handler
// for POST /v1/decide and GET /healthz; where it listens is the caller's matter.
//
// The wire is JSON, described in openapi.yaml beside the code and in
// docs/formats/decide.md. One HTTP call asks one question: the client sends a request of
// many questions as many calls, one after the other, under one deadline. Attribute
// values keep their type on the way: a double is always written with a point or an
// exponent, an int never.
//
// A service that is down, late or answers nonsense gives a timeout or error outcome with
// a code, never a decision: it is not a denial. The client does not retry, does not
// follow redirects, and keeps its key, which comes from an environment variable, out of
// everything that it returns, also where the service sends it back. A service that never
// answers is given up after a while (see docs/formats/decide.md).
package remote
