package remote

import (
	"github.com/clefbench/clefbench/decision"
)

// DecodeRequest reads a request body as the handler does: strictly, with unknown and
// repeated fields refused. Id, clock and seed are zero where the body has none; the
// attributes have a schema of their own. Errors are a [*SyntaxError] with the position.
func DecodeRequest(body []byte) (*decision.Request, error) {
	q, s, err := parseRequest(body)
	if err != nil {
		return nil, err
	}
	h := &handler{}
	attrs, err := h.attrs(q, s)
	if err != nil {
		return nil, err
	}
	return &decision.Request{
		ID: q.id, Scenario: q.scenario, Attrs: attrs, Features: q.features, FeatureSet: q.featureSet,
		Questions: []decision.Question{q.ask}, Body: body, Now: q.now, Seed: q.seed.V, Deadline: q.timeout,
	}, nil
}

// DecodeAnswer reads the body of status 200 as the client does, into d, and what it says
// of model and engine into a. Unknown fields are passed over. On an error neither is
// changed.
func DecodeAnswer(body []byte, d *decision.Decision, a *decision.Artefact) error {
	return parseAnswer(body, d, a)
}

// ErrorText is the message of an error body where it has the usual form, else the
// beginning of the body, after the name of the status.
func ErrorText(status int, body []byte) string { return errorText(status, body) }
