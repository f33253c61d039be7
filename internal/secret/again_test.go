package secret

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// What was replaced once is not replaced again, whatever stood beside it: recorded again, a
// data set is clean.
func TestOnceIsEnough(t *testing.T) {
	var parts []string
	for _, texts := range positives() {
		for _, text := range texts {
			parts = append(parts, unmark.Replace(text))
		}
	}
	parts = append(parts, negatives()...)
	parts = append(parts, `"`, "'", "\n", "=", ": ", "&", "password", "key", "Bearer ", "@", "://", "[redacted:card]", "<", "</password>", "%20", "\\", "--", " ")
	r := rand.New(rand.NewPCG(1, 2))
	wrong := 0
	for range 200_000 {
		var b strings.Builder
		for range 2 + r.IntN(4) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		text := b.String()
		if r.IntN(2) == 0 {
			quoted, _ := json.Marshal(text)
			text = `{"a":` + string(quoted) + `}`
		}
		var s Scanner
		clean, _ := s.Text(text)
		s.Forget()
		if again, found := s.Text(clean); len(found) > 0 {
			if wrong++; wrong < 10 {
				t.Errorf("%q\nbecomes %q\nthen    %q", text, clean, again)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d texts", wrong)
	}
}
