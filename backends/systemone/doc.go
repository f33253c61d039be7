// Package systemone reads the wire of hosted decision models: the SystemOne dialect of
// TypeSafe's Jev, Cloudflare's Clef and their gateways, and the OpenAI Decisions dialect.
// docs/formats/systemone.md has both, field by field.
//
// Steps: [ParseRequest] gives a request's questions in the order of the wire, with state,
// instructions and criteria as the bytes that were sent; [Request.WithModel] gives the
// same body for another model, every other byte unchanged. [ParseResponse] reads an
// answer out of whichever envelope it came in; [Response.Answer] finds the answer to a
// question and [Answer.Check] holds it to what was asked. [ParseError] reads an error
// body, and [StripEchoes] removes from it what it repeats of the request.
//
// Bodies are never decoded into maps and encoded again: that sorts criteria and escapes
// text, and with some models either changes the decision.
//
// The package judges no content: probabilities that do not add up, or a confidence that
// does not follow from them, are for the caller to look at ([SumTolerance], [Confidence]).
// It sends nothing and listens to nothing.
package systemone
