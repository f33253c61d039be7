package systemone

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

func printRequest(r *Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s model %q %s %s\n", r.Dialect, r.Model, r.State.Name, r.State.Raw)
	for i := range r.Questions {
		q := &r.Questions[i]
		fmt.Fprintf(&b, "question %q type %q kind %q instructions %s criteria %s\n", q.ID, q.Type, q.Kind, q.Instructions, q.Criteria)
		for _, o := range q.Options {
			fmt.Fprintf(&b, "  option %q bool %v label %q criterion %s\n", o.Name, o.Bool, o.Label, o.Criterion)
		}
		fmt.Fprintf(&b, "  candidates %q\n", q.Candidates())
	}
	for _, m := range r.Extra {
		fmt.Fprintf(&b, "extra %q %s\n", m.Name, m.Raw)
	}
	return b.String()
}

func printResponse(r *Response) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s model %q id %q provider %q in %v out %v cost %v truncated %v\n", r.Envelope, r.Model, r.ID, r.Provider, r.TokensIn, r.TokensOut, r.Cost, r.Truncated)
	for _, a := range r.Answers {
		fmt.Fprintf(&b, "answer %q type %q kind %q refused %v choice %q noul %v score %v confidence %v legend %s\n",
			a.ID, a.Type, a.Kind, a.Refused, a.Choice, a.Noul, a.Score, a.Confidence, a.Legend)
		for _, p := range a.Probabilities {
			fmt.Fprintf(&b, "  %q %q %v\n", p.Name, p.Label, p.P)
		}
	}
	if r.Failure != nil {
		fmt.Fprintf(&b, "failure %q %q %q\n", r.Failure.Type, r.Failure.Code, r.Failure.Message)
	}
	return b.String()
}

func printError(body []byte) (string, error) {
	e, err := ParseError(body, Limits{})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "type %q code %q message %q\n", e.Type, e.Code, e.Message)
	for _, it := range e.Issues {
		fmt.Fprintf(&b, "issue %q %q %q\n", it.Loc, it.Type, it.Message)
	}
	stripped, n, err := StripEchoes(body, Limits{})
	fmt.Fprintf(&b, "stripped %d %s\n", n, stripped)
	return b.String(), err
}

// The vectors are bodies in the forms that the providers' documentation and recordings
// show; the golden files were read by eye against them.
func TestGoldenVectors(t *testing.T) {
	kinds := map[string]func([]byte) (string, error){
		"requests": func(b []byte) (string, error) {
			r, err := ParseRequest(b, Limits{})
			if err != nil {
				return "", err
			}
			return printRequest(r), nil
		},
		"responses": func(b []byte) (string, error) {
			r, err := ParseResponse(b, Limits{})
			if err != nil {
				return "", err
			}
			return printResponse(r), nil
		},
		"errors": printError,
	}
	for kind, read := range kinds {
		files, err := filepath.Glob(filepath.Join("testdata", kind, "*.json"))
		if err != nil || len(files) < 4 {
			t.Fatalf("%s: %d files, %v", kind, len(files), err)
		}
		for _, name := range files {
			body, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := read(body)
			if err != nil {
				got = "error: " + err.Error() + "\n"
			}
			golden := strings.TrimSuffix(name, ".json") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || got != string(want) {
				t.Errorf("%s: %v\ngot:\n%s\nwant:\n%s", name, err, got, want)
			}
		}
	}
}
