package systemone

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func seed(f *testing.F, kind string) {
	files, _ := filepath.Glob(filepath.Join("testdata", kind, "*.json"))
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil {
			f.Add(b)
		}
	}
}

// What is read is JSON to encoding/json too; the model is the only thing that WithModel
// changes; everything raw is a part of the body.
func FuzzRequest(f *testing.F) {
	seed(f, "requests")
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ParseRequest(body, Limits{})
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrLimit) {
				t.Fatal(err)
			}
			return
		}
		if !json.Valid(body) || !bytes.Contains(body, r.State.Raw) {
			t.Fatalf("read what is no JSON: %q", body)
		}
		seen := map[string]bool{}
		for i := range r.Questions {
			q := &r.Questions[i]
			if seen[q.ID] || !bytes.Contains(body, q.Raw) {
				t.Fatalf("question %q twice, or not in the body", q.ID)
			}
			seen[q.ID] = true
		}
		out, err := r.WithModel("other")
		if err != nil {
			return
		}
		again, err := ParseRequest(out, Limits{})
		if err != nil || again.Model != "other" {
			t.Fatalf("%v\n%s\n%s", err, body, out)
		}
		back := append(append(append([]byte(nil), out[:again.modelAt]...), body[r.modelAt:r.modelEnd]...), out[again.modelEnd:]...)
		if !bytes.Equal(back, body) {
			t.Fatalf("more than the model changed:\n%s\n%s", body, out)
		}
	})
}

func FuzzResponse(f *testing.F) {
	seed(f, "responses")
	seed(f, "errors")
	f.Fuzz(func(t *testing.T, body []byte) {
		if r, err := ParseResponse(body, Limits{}); err == nil {
			if !json.Valid(body) || len(r.Answers) == 0 && r.Failure == nil && !bytes.Contains(body, []byte("answers")) {
				t.Fatalf("read %q as %+v", body, r)
			}
			for i := range r.Answers {
				a := &r.Answers[i]
				_ = a.Check(&Question{ID: a.ID, Type: a.Type, Kind: a.Kind})
				a.Level()
			}
		}
		_, _ = ParseError(body, Limits{})
		out, n, err := StripEchoes(body, Limits{})
		if err != nil {
			return
		}
		if !json.Valid(out) || n == 0 && !bytes.Equal(out, body) {
			t.Fatalf("%q became %q", body, out)
		}
		if _, left, err := StripEchoes(out, Limits{}); err != nil || left != 0 {
			t.Fatalf("%d echoes were left in %q (%v)", left, out, err)
		}
	})
}
