package recorder

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/secret"
	"github.com/clefbench/clefbench/snapshot"
)

// clean returns what to store of a captured body. The caller's own rewriting comes first,
// so that what it overlooks is still found. cut says that there was more of the body.
func (d *drain) clean(notes []string, name string, b *body, cut bool) ([]byte, []string, error) {
	data := b.data
	if data == nil {
		data = []byte{} // seen and empty is not the same as not captured
	}
	if len(data) == 0 {
		return data, notes, nil
	}
	if d.plan.RedactBody != nil {
		var err error
		if data, err = d.plan.RedactBody(data); err != nil {
			return nil, notes, fmt.Errorf("%s: %w", name, err)
		}
		notes = append(notes, name+":rewritten")
	}
	if d.plan.RawBodies {
		return data, notes, nil
	}
	return cleanBody(notes, name, data, shapeOf(cut, b.json && d.plan.RedactBody == nil), &d.secrets)
}

func shapeOf(cut, json bool) secret.Shape {
	switch {
	case cut:
		return secret.Truncated
	case json:
		return secret.DeclaredJSON
	}
	return secret.Whole
}

// cleanBody returns a body without secrets, nil for one that must not be stored.
func cleanBody(notes []string, name string, data []byte, shape secret.Shape, s *secret.Scanner) ([]byte, []string, error) {
	clean, found, omitted, err := s.Body(data, shape)
	switch {
	case errors.Is(err, secret.ErrUnparsable):
		return nil, append(notes, name+":unparsable"), nil
	case errors.Is(err, secret.ErrBinary):
		return nil, append(notes, name+":binary"), nil
	case err != nil:
		return nil, notes, fmt.Errorf("%s: %w", name, err)
	}
	return clean, noteFindings(notes, name, found, omitted), nil
}

// rewritten reports whether the notes of a row speak of its body, but not of its end.
func rewritten(notes []string, name string) bool {
	some := false
	for _, n := range notes {
		what, how, _ := strings.Cut(n, ":")
		if what == name {
			some = true
			if how == "truncated" {
				return false
			}
		}
	}
	return some
}

// noteFindings says what was found where: "input:/messages/0/content:jwt", without a
// pointer in a text.
func noteFindings(notes []string, name string, found []secret.Finding, omitted int) []string {
	for _, f := range found {
		where := name
		if f.Pointer != "" {
			where += ":" + f.Pointer
		}
		notes = append(notes, where+":"+string(f.Kind))
	}
	if omitted > 0 {
		notes = append(notes, name+":and "+strconv.Itoa(omitted)+" more")
	}
	return notes
}

// cleanValue takes secrets out of a value that is text.
func cleanValue(v *decision.Value, name string, notes []string, s *secret.Scanner) []string {
	if v.Type() != decision.String {
		return notes
	}
	clean, found := s.Text(v.Str())
	if len(found) == 0 {
		return notes
	}
	*v = decision.StringValue(clean)
	return noteFindings(notes, name, found, 0)
}

// texts takes secrets out of the rows' free texts and labels, besides bodies and attributes. The notes
// of a request's rows are shared, so a row with its own gets a copy.
func (d *drain) texts(g *group) error {
	for i := range g.slots {
		s := &g.slots[i]
		s.redacted = cleanTexts(&s.row, s.redacted, &d.secrets)
		s.redacted = cleanLabels(&s.row, s.redacted, &d.secrets)
	}
	return nil
}

// cleanTexts is texts for one row; own is memory for its notes.
func cleanTexts(row *snapshot.Snapshot, own []string, s *secret.Scanner) []string {
	for _, t := range [...]struct {
		name string
		text *string
	}{{"params", &row.Params}, {"nd", &row.ND}, {"error", &row.Error}} {
		if *t.text == "" {
			continue
		}
		clean, found := s.Text(*t.text)
		if len(found) == 0 {
			continue
		}
		*t.text = clean
		own = noteFindings(append(own[:0], row.Redacted...), t.name, found, 0)
		row.Redacted = own
	}
	return own
}
