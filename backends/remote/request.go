package remote

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

// maxCandidates bounds the candidates of a question.
const maxCandidates = 4096

// appendRequest writes the body that asks one question of a request. The error wraps
// errNotEncodable.
func appendRequest(b []byte, req *decision.Request, q *decision.Question, timeout time.Duration) ([]byte, error) {
	w := &writer{b: append(b, '{')}
	if !req.ID.IsZero() {
		w.text("id", req.ID.String())
	}
	w.optional("scenario", req.Scenario)
	w.optional("action", q.ID)
	w.optional("type", string(q.Type))
	if len(q.Candidates) > 0 {
		w.key("candidates")
		w.texts(q.Candidates)
	}
	w.key("context")
	w.context(req.Attrs)
	if req.Features != nil {
		w.key("features")
		w.floats(req.Features)
		w.optional("feature_set", req.FeatureSet)
	}
	if !req.Now.IsZero() {
		w.now(req.Now)
	}
	w.key("seed")
	w.b = strconv.AppendUint(w.b, req.Seed, 10)
	if timeout > 0 {
		w.key("timeout_ms")
		w.b = appendDouble(w.b, float64(timeout)/float64(time.Millisecond), 64)
	}
	return append(w.b, '}'), w.err
}

// writer writes the fields of an object; the first error sticks.
type writer struct {
	b   []byte
	err error
}

// comma separates a field or an element from the one before it.
func (w *writer) comma() {
	if c := w.b[len(w.b)-1]; c != '{' && c != '[' {
		w.b = append(w.b, ',')
	}
}

// key starts a field.
func (w *writer) key(k string) {
	w.comma()
	w.value(k)
	w.b = append(w.b, ':')
}

// value writes a string.
func (w *writer) value(s string) {
	out, err := appendText(w.b, s)
	w.b = out
	if w.err == nil {
		w.err = err
	}
}

func (w *writer) text(k, s string) {
	w.key(k)
	w.value(s)
}

// optional leaves an empty text out.
func (w *writer) optional(k, s string) {
	if s != "" {
		w.text(k, s)
	}
}

func (w *writer) texts(list []string) {
	w.b = append(w.b, '[')
	for _, s := range list {
		w.comma()
		w.value(s)
	}
	w.b = append(w.b, ']')
}

// context writes the attributes that are there, in the order of the schema.
func (w *writer) context(a decision.Attrs) {
	w.b = append(w.b, '{')
	for i, f := range a.Schema.Fields() {
		v := a.At(i)
		if v.IsNull() {
			continue
		}
		if (f.Name == keyDouble || f.Name == keyBytes) && w.err == nil {
			w.err = fmt.Errorf("the attribute name %q has a meaning of its own: %w", f.Name, errNotEncodable)
		}
		w.key(f.Name)
		w.b = appendValue(w.b, v)
	}
	w.b = append(w.b, '}')
}

// floats writes a feature vector, each with the digits that a float32 needs.
func (w *writer) floats(xs []float32) {
	w.b = append(w.b, '[')
	for _, x := range xs {
		w.comma()
		switch f := float64(x); {
		case math.IsNaN(f) || math.IsInf(f, 0):
			w.b = appendValue(w.b, decision.DoubleValue(f))
		default:
			w.b = appendDouble(w.b, f, 32)
		}
	}
	w.b = append(w.b, ']')
}

func (w *writer) now(t time.Time) {
	t = t.UTC()
	if (t.Year() < 1 || t.Year() > 9999) && w.err == nil {
		w.err = fmt.Errorf("the year %d: %w", t.Year(), errNotEncodable)
	}
	w.text("now", t.Format(time.RFC3339Nano))
}

// question is one decoded request body.
type question struct {
	id          decision.ID
	scenario    string
	ask         decision.Question
	names       []string
	values      []decision.Value
	features    []float32
	featureSet  string
	now         time.Time
	seed        decision.Opt[uint64]
	timeout     time.Duration
	contextSeen bool
	// at gives the offset of a context value, for errors that are found later.
	at []int
}

// requestFields are the names that a request may have.
func requestFields() []string {
	return []string{"id", "scenario", "action", "type", "candidates", "context", "features", "feature_set", "now", "seed", "timeout_ms"}
}

// parseRequest reads a body strictly: an unknown field is an error, so that a misspelt
// one is not lost.
func parseRequest(body []byte) (*question, *scanner, error) {
	s := &scanner{b: body}
	q := &question{ask: decision.Question{Type: decision.QuestionAction}}
	err := s.object(func(key string, at int) error { return q.field(s, key, at) })
	if err == nil {
		err = s.end()
	}
	if err == nil && !q.contextSeen {
		err = s.errorAt(0, `missing field "context"`)
	}
	if err != nil {
		return nil, nil, err
	}
	return q, s, nil
}

func (q *question) field(s *scanner, key string, at int) error {
	var err error
	switch key {
	case "id":
		var text string
		if text, err = s.text(); err == nil {
			if q.id, err = decision.ParseID(text); err != nil {
				err = s.errorAt(at, "id: %v", err)
			}
		}
	case "scenario":
		q.scenario, err = s.text()
	case "action":
		q.ask.ID, err = s.text()
	case "type":
		err = q.questionType(s)
	case "candidates":
		q.ask.Candidates, err = s.candidates()
	case "context":
		err = q.context(s)
	case "features":
		err = q.vector(s)
	case "feature_set":
		q.featureSet, err = s.text()
	case "now", "seed", "timeout_ms":
		err = q.clock(s, key)
	default:
		hint := ""
		if c := document.Closest(key, requestFields()); c != "" {
			hint = fmt.Sprintf(" (did you mean %q?)", c)
		}
		return s.errorAt(at, "unknown field %q%s", key, hint)
	}
	return err
}

func (q *question) questionType(s *scanner) error {
	s.peek()
	at := s.i
	text, err := s.text()
	if err != nil {
		return err
	}
	switch t := decision.QuestionType(text); t {
	case decision.QuestionAction, decision.QuestionNoul, decision.QuestionChoice, decision.QuestionScore:
		q.ask.Type = t
		return nil
	}
	return s.errorAt(at, "unknown type %q (want action, noul, choice or score)", text)
}

func (s *scanner) candidates() ([]string, error) {
	var out []string
	seen := map[string]bool{}
	err := s.list(func() error {
		s.peek()
		at := s.i
		c, err := s.text()
		switch {
		case err != nil:
			return err
		case c == "" || seen[c]:
			return s.errorAt(at, "candidate %q is empty or stands twice", c)
		case len(out) == maxCandidates:
			return s.errorAt(at, "more than %d candidates", maxCandidates)
		}
		seen[c] = true
		out = append(out, c)
		return nil
	})
	return out, err
}

// context reads the attributes. Nested objects are groups: {"headers": {"accept": "x"}}
// is the attribute headers.accept.
func (q *question) context(s *scanner) error {
	q.contextSeen = true
	seen := map[string]bool{}
	return s.object(func(key string, _ int) error {
		return s.attribute(key, func(name string, v decision.Value, at int) error {
			if name == "" || seen[name] {
				return s.errorAt(at, "attribute %q has no name or stands twice", name)
			}
			seen[name] = true
			q.names, q.values, q.at = append(q.names, name), append(q.values, v), append(q.at, at)
			return nil
		})
	})
}

func (q *question) vector(s *scanner) error {
	q.features = []float32{}
	return s.list(func() error {
		if s.peek() != '{' {
			x, err := s.float(32)
			q.features = append(q.features, float32(x))
			return err
		}
		return s.group("features", func(name string, v decision.Value, at int) error {
			if name != "features" || v.Type() != decision.Double {
				return s.errorAt(at, "a feature must be a number")
			}
			q.features = append(q.features, float32(v.Double()))
			return nil
		})
	})
}

// clock reads the recorded clock, the seed and the time allowed.
func (q *question) clock(s *scanner, key string) error {
	s.peek()
	at := s.i
	if key == "now" {
		text, err := s.text()
		if err == nil {
			if q.now, err = time.Parse(time.RFC3339Nano, text); err != nil {
				err = s.errorAt(at, "now %q is no time of RFC 3339", text)
			}
		}
		return err
	}
	literal, _, err := s.number()
	if err != nil {
		return err
	}
	if key == "seed" {
		x, err := strconv.ParseUint(literal, 10, 64)
		if err != nil {
			return s.errorAt(at, "seed must be a whole number from 0 to 2^64-1")
		}
		q.seed = decision.Some(x)
		return nil
	}
	ms, err := strconv.ParseFloat(literal, 64)
	if err != nil || ms <= 0 || ms > 24*3600*1000 {
		return s.errorAt(at, "timeout_ms must be above 0 and at most a day")
	}
	q.timeout = time.Duration(math.Round(ms * float64(time.Millisecond)))
	return nil
}

// digestText prints a digest, and nothing for an unknown one.
func digestText(d [32]byte) string {
	if d == [32]byte{} {
		return ""
	}
	return hex.EncodeToString(d[:])
}
