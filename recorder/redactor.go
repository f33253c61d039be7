package recorder

import (
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/secret"
	"github.com/clefbench/clefbench/snapshot"
)

// Redactor takes secrets out of complete rows that no [Recorder] sees, as Capture.All
// does: an import that writes segments itself. The zero Redactor is ready; it is not safe
// for concurrent use.
type Redactor struct {
	// RawBodies leaves bodies as they are, as Capture.RawBodies does.
	RawBodies bool

	denied  deniedCache
	secrets secret.Scanner
	request decision.ID
}

// Redact changes the row, which has to be the caller's own with all it points to:
// attributes that are credentials go, secrets in strings, bodies and error text are
// and labels are replaced, and Redacted says what was done. A body that must not be stored
// becomes nil. Rows of one request belong behind one another: what one names as a password
// is looked for in all.
func (r *Redactor) Redact(s *snapshot.Snapshot) error {
	if s.RequestID != r.request || s.RequestID.IsZero() {
		r.secrets.Forget()
		r.request = s.RequestID
	}
	s.Error = scrub(s.Error)
	before := len(s.Redacted)
	notes := append([]string(nil), s.Redacted...)
	s.Attrs, notes = r.denied.strip(s.Attrs, notes, &r.secrets)
	cut := s.InputLen.Set && s.InputLen.V > int64(len(s.Input)) && !rewritten(s.Redacted, "input")
	for _, b := range [...]struct {
		name string
		data *[]byte
		cut  bool
	}{{"input", &s.Input, cut}, {"output", &s.Output, false}} {
		if len(*b.data) == 0 || r.RawBodies {
			continue
		}
		var err error
		if *b.data, notes, err = cleanBody(notes, b.name, *b.data, shapeOf(b.cut, false), &r.secrets); err != nil {
			return err
		}
	}
	if notes = echoesIn(s.Attrs, nil, notes, &r.secrets); len(notes) > before {
		s.Redacted = notes
	}
	cleanLabels(s, cleanTexts(s, nil, &r.secrets), &r.secrets)
	return nil
}
