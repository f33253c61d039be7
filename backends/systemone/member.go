package systemone

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// members reads an object into its members, in order.
func (s *scanner) members(limit int) ([]Member, error) {
	var out []Member
	err := s.object(func(key string, _ int) error {
		if len(out) == limit {
			return fmt.Errorf("%w: an object of more than %d fields", ErrLimit, limit)
		}
		raw, err := s.value()
		out = append(out, Member{key, raw})
		return err
	})
	return out, err
}

// Member is one field of an object: its name, and its value as it stands in the body.
type Member struct {
	Name string
	Raw  json.RawMessage
}

// field returns the value of a name, nil when it is absent or null.
func field(ms []Member, names ...string) json.RawMessage {
	for _, name := range names {
		for i := range ms {
			if ms[i].Name == name && string(ms[i].Raw) != "null" {
				return ms[i].Raw
			}
		}
	}
	return nil
}

// textOf reads a raw value as text; false when it is none.
func textOf(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	out, err := (&scanner{b: raw}).text()
	return out, err == nil
}

// labelOf reads a text, or true or false as the word.
func labelOf(raw json.RawMessage) (string, bool) {
	if w := string(raw); w == "true" || w == "false" {
		return w, true
	}
	return textOf(raw)
}

// numberOf reads a raw value as a number; false when it is none.
func numberOf(raw json.RawMessage) (float64, bool) {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, false
	}
	x, err := strconv.ParseFloat(string(raw), 64)
	return x, err == nil
}
