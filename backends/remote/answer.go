package remote

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/clefbench/clefbench/decision"
)

// Defaults for what a plain service leaves out.
const (
	// ConfidenceUnspecified is the definition of a confidence that came without one.
	ConfidenceUnspecified = "unspecified"
	// CodeRemoteError is the code of an error status that came without one.
	CodeRemoteError = "remote-error"
)

// appendAnswer writes the body that answers one question.
func appendAnswer(b []byte, d *decision.Decision, a *decision.Artefact, snapshot decision.ID) ([]byte, error) {
	w := &writer{b: append(b, '{')}
	w.text("status", d.Status.String())
	w.optional("action", d.Action)
	if d.Params != "" {
		w.object("params", d.Params)
	}
	w.key("confidence")
	if d.Confidence.Set {
		w.number(d.Confidence.V, 64)
		w.optional("confidence_def", d.ConfidenceDef)
	} else {
		w.b = append(w.b, "null"...)
	}
	w.text("snapshot_id", snapshot.String())
	if d.Reason.Kind != decision.ReasonNone {
		w.text("reason", d.Reason.Kind.String())
	}
	w.optional("rule_id", d.Reason.Rule)
	if d.Reason.Skipped > 0 {
		w.key("skipped")
		w.b = strconv.AppendUint(w.b, uint64(d.Reason.Skipped), 10)
	}
	w.candidates(d.Candidates)
	w.optional("model", a.ModelResolved)
	w.optional("engine_version", a.EngineVersion)
	w.optional("strategy_version", a.StrategyVersion)
	w.optional("strategy_digest", digestText(a.StrategyDigest))
	w.optional("code", d.ErrorCode)
	w.optional("error", d.Error)
	return append(w.b, '}'), w.err
}

// object writes a field that is JSON already, after checking that it is an object.
func (w *writer) object(k, text string) {
	s := &scanner{b: []byte(text)}
	err := s.object(func(string, int) error { _, err := s.skip(); return err })
	if err == nil {
		err = s.end()
	}
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("%s %.80q: %w: %w", k, text, errNotEncodable, err)
	}
	w.key(k)
	w.b = append(w.b, text...)
}

func (w *writer) number(x float64, bits int) {
	if (math.IsNaN(x) || math.IsInf(x, 0)) && w.err == nil {
		w.err = fmt.Errorf("the number %v: %w", x, errNotEncodable)
		x = 0
	}
	w.b = appendDouble(w.b, x, bits)
}

// candidates writes all candidates in order under probabilities (null where there is
// none), and the scores that exist beside them.
func (w *writer) candidates(cs []decision.Candidate) {
	if len(cs) == 0 {
		return
	}
	seen, scores := map[string]bool{}, false
	w.key("probabilities")
	w.b = append(w.b, '{')
	for _, c := range cs {
		if seen[c.Action] && w.err == nil {
			w.err = fmt.Errorf("candidate %q stands twice: %w", c.Action, errNotEncodable)
		}
		seen[c.Action] = true
		scores = scores || c.Score.Set
		w.key(c.Action)
		if c.Probability.Set {
			w.number(c.Probability.V, 64)
		} else {
			w.b = append(w.b, "null"...)
		}
	}
	w.b = append(w.b, '}')
	if !scores {
		return
	}
	w.key("scores")
	w.b = append(w.b, '{')
	for _, c := range cs {
		if c.Score.Set {
			w.key(c.Action)
			w.number(float64(c.Score.V), 32)
		}
	}
	w.b = append(w.b, '}')
}

// answer is one decoded response body.
type answer struct {
	status   string
	d        decision.Decision
	artefact decision.Artefact
}

// parseAnswer reads a body into d and a. Fields that are not known are passed over, for
// services add theirs; what is known must be well formed.
func parseAnswer(body []byte, d *decision.Decision, a *decision.Artefact) error {
	s := &scanner{b: body}
	r := answer{d: decision.Decision{Candidates: d.Candidates[:0]}, artefact: *a}
	err := s.object(func(key string, at int) error { return r.field(s, key, at) })
	if err == nil {
		err = s.end()
	}
	if err == nil {
		err = r.finish()
	}
	if err != nil {
		return err
	}
	*d, *a = r.d, r.artefact
	return nil
}

// field reads one field; null stands for an absent one.
func (r *answer) field(s *scanner, key string, at int) error {
	if absent, err := s.null(); absent || err != nil {
		return err
	}
	if text := r.textField(key); text != nil {
		var err error
		*text, err = s.text()
		return err
	}
	switch key {
	case "params":
		return r.params(s)
	case "confidence":
		return r.readConfidence(s, at)
	case "reason":
		return r.reason(s)
	case "skipped":
		return r.skipped(s)
	case "probabilities":
		return r.numbers(s, 64, func(c *decision.Candidate, x float64) bool {
			c.Probability = decision.Some(x)
			return x >= 0 && x <= 1
		})
	case "scores":
		return r.numbers(s, 32, func(c *decision.Candidate, x float64) bool {
			c.Score = decision.Some(float32(x))
			return true
		})
	case "strategy_digest":
		return r.digest(s, at)
	}
	_, err := s.skip()
	return err
}

// textField returns where a field of plain text goes, or nil.
func (r *answer) textField(key string) *string {
	switch key {
	case "status":
		return &r.status
	case "action":
		return &r.d.Action
	case "confidence_def":
		return &r.d.ConfidenceDef
	case "rule_id":
		return &r.d.Reason.Rule
	case "model":
		return &r.artefact.ModelResolved
	case "engine_version":
		return &r.artefact.EngineVersion
	case "strategy_version":
		return &r.artefact.StrategyVersion
	case "code":
		return &r.d.ErrorCode
	case "error":
		return &r.d.Error
	}
	return nil
}

func (r *answer) params(s *scanner) error {
	s.peek()
	at := s.i
	raw, err := s.skip()
	if err == nil && raw[0] != '{' {
		err = s.errorAt(at, "params must be an object")
	}
	r.d.Params = string(raw)
	return err
}

func (r *answer) readConfidence(s *scanner, at int) error {
	x, err := s.float(64)
	if err == nil && !(x >= 0 && x <= 1) {
		err = s.errorAt(at, "confidence %v is not in [0,1]", x)
	}
	r.d.Confidence = decision.Some(x)
	return err
}

// reason takes a word that is not known for no reason: the list may grow.
func (r *answer) reason(s *scanner) error {
	text, err := s.text()
	if err != nil {
		return err
	}
	if kind, err := decision.ParseReason(text); err == nil {
		r.d.Reason.Kind = kind
	}
	return nil
}

func (r *answer) skipped(s *scanner) error {
	s.peek()
	at := s.i
	literal, _, err := s.number()
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(literal, 10, 16)
	if err != nil {
		return s.errorAt(at, "skipped must be a whole number from 0 to 65535")
	}
	r.d.Reason.Skipped = uint16(n)
	return nil
}

// numbers reads a map of candidates; null names a candidate without a number.
func (r *answer) numbers(s *scanner, bits int, set func(c *decision.Candidate, x float64) bool) error {
	at := map[string]int{}
	for i, c := range r.d.Candidates {
		at[c.Action] = i
	}
	return s.object(func(action string, offset int) error {
		i, ok := at[action]
		if !ok {
			if action == "" || len(r.d.Candidates) == maxCandidates {
				return s.errorAt(offset, "a candidate without a name, or more than %d", maxCandidates)
			}
			i = len(r.d.Candidates)
			at[action] = i
			r.d.Candidates = append(r.d.Candidates, decision.Candidate{Action: action})
		}
		if absent, err := s.null(); absent || err != nil {
			return err
		}
		x, err := s.float(bits)
		if err == nil && !set(&r.d.Candidates[i], x) {
			err = s.errorAt(offset, "the probability %v of %q is not in [0,1]", x, action)
		}
		return err
	})
}

func (r *answer) digest(s *scanner, at int) error {
	text, err := s.text()
	if err != nil {
		return err
	}
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(r.artefact.StrategyDigest) {
		return s.errorAt(at, "strategy_digest must be 64 hexadecimal digits")
	}
	r.artefact.StrategyDigest = [32]byte(raw)
	return nil
}

// finish fills in what a plain service leaves out, and refuses what contradicts itself.
func (r *answer) finish() error {
	d := &r.d
	switch {
	case r.status != "":
		var err error
		if d.Status, err = decision.ParseStatus(r.status); err != nil || d.Status == decision.StatusNone {
			return fmt.Errorf("unknown status %.40q", r.status)
		}
	case d.Action != "":
		d.Status = decision.OK
	default:
		return errors.New("neither status nor action")
	}
	switch {
	case d.Status == decision.OK && d.Action == "":
		return errors.New("status ok without an action")
	case d.Action != "" && d.Status != decision.OK && d.Status != decision.Denied:
		return fmt.Errorf("status %v with the action %.40q", d.Status, d.Action)
	}
	if d.Status.Answered() {
		d.ErrorCode, d.Error = "", ""
	} else if d.ErrorCode == "" {
		d.ErrorCode = CodeRemoteError
	}
	if d.Confidence.Set && d.ConfidenceDef == "" {
		d.ConfidenceDef = ConfidenceUnspecified
	}
	if !d.Confidence.Set {
		d.ConfidenceDef = ""
	}
	return nil
}
