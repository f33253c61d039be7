package remote_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/backends/remote"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

// object is a JSON object of the specification.
type object = map[string]any

func loadSpec(t *testing.T) object {
	t.Helper()
	data, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, root, err := document.Parse("openapi.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	return root.JSON().(object)
}

// at follows a path; a missing element fails the test.
func at(t *testing.T, x any, path ...string) any {
	t.Helper()
	for _, p := range path {
		o, ok := x.(object)
		if !ok || o[p] == nil {
			t.Fatalf("the specification has no %s", strings.Join(path, "."))
		}
		x = o[p]
	}
	return x
}

func schemaOf(t *testing.T, spec object, name string) (required, properties []string) {
	t.Helper()
	for _, r := range at(t, spec, "components", "schemas", name, "required").([]any) {
		required = append(required, r.(string))
	}
	for p := range at(t, spec, "components", "schemas", name, "properties").(object) {
		properties = append(properties, p)
	}
	return required, properties
}

// conforms holds a JSON body to a schema's required and declared fields.
func conforms(t *testing.T, spec object, name, body string) {
	t.Helper()
	var got object
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	required, properties := schemaOf(t, spec, name)
	for _, r := range required {
		if _, ok := got[r]; !ok {
			t.Errorf("%s lacks %q: %s", name, r, body)
		}
	}
	for k := range got {
		if !slices.Contains(properties, k) {
			t.Errorf("%s has %q, which the specification does not name: %s", name, k, body)
		}
	}
}

// Every example request of the specification gets an answer that conforms to it, and
// every example answer is read by the client.
func TestExamplesOfTheSpecification(t *testing.T) {
	spec := loadSpec(t)
	post := at(t, spec, "paths", "/v1/decide", "post")
	requests := at(t, post, "requestBody", "content", "application/json", "examples").(object)
	answers := at(t, post, "responses", "200", "content", "application/json", "examples").(object)
	if len(requests) < 3 || len(answers) < 3 {
		t.Fatalf("%d and %d examples", len(requests), len(answers))
	}
	h := remote.Handler(&engine{}, remote.HandlerOptions{})
	for name, ex := range requests {
		body, err := json.Marshal(at(t, ex, "value"))
		if err != nil {
			t.Fatal(err)
		}
		conforms(t, spec, "Request", string(body))
		code, answer := post1(t, h, string(body))
		if code != 200 {
			t.Errorf("%s: %d %s", name, code, answer)
		}
		conforms(t, spec, "Decision", answer)
	}
	for name, ex := range answers {
		body, err := json.Marshal(at(t, ex, "value"))
		if err != nil {
			t.Fatal(err)
		}
		conforms(t, spec, "Decision", string(body))
		c := client(t, remote.ClientOptions{BaseURL: serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))})
		if d := ask(t, c, request(t, 0.1)).Decisions[0]; d.ErrorCode == decision.CodeBadResponse {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// post1 sends through a recorder; unlike post it does not look at the headers.
func post1(t *testing.T, h http.Handler, body string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/decide", strings.NewReader(body)))
	return w.Code, w.Body.String()
}

// The specification and the handler name the same request fields: each declared one is
// taken, and it is required exactly when leaving it out is refused.
func TestSpecificationAndHandlerAgree(t *testing.T) {
	spec := loadSpec(t)
	h := remote.Handler(&engine{}, remote.HandlerOptions{})
	full := at(t, spec, "paths", "/v1/decide", "post", "requestBody", "content", "application/json", "examples", "full", "value").(object)
	full["features"], full["feature_set"] = []any{1.5}, "v1"
	required, properties := schemaOf(t, spec, "Request")
	for _, p := range properties {
		value, ok := full[p]
		if !ok {
			t.Errorf("no example holds %q", p)
			continue
		}
		body, err := json.Marshal(object{"context": object{}, p: value})
		if err != nil {
			t.Fatal(err)
		}
		if code, answer := post1(t, h, string(body)); code != 200 {
			t.Errorf("%s alone: %d %s", p, code, answer)
		}
	}
	if code, _ := post1(t, h, "{}"); !reflect.DeepEqual(required, []string{"context"}) || code != 400 {
		t.Errorf("required %v, and {} gives %d", required, code)
	}
	for _, body := range []string{"{}", `{"context": {}, "other": 1}`} {
		_, answer := post1(t, h, body)
		conforms(t, spec, "Error", answer)
	}
}

// Statuses, reasons and question types are listed as the vocabulary has them.
func TestSpecificationListsTheVocabulary(t *testing.T) {
	spec := loadSpec(t)
	var statuses, reasons []any
	for s := decision.OK; s <= decision.NotReplayable; s++ {
		statuses = append(statuses, s.String())
	}
	for r := decision.ReasonMatch; r <= decision.ReasonTimeout; r++ {
		reasons = append(reasons, r.String())
	}
	for _, tc := range []struct {
		path []string
		want []any
	}{
		{[]string{"Decision", "properties", "status", "enum"}, statuses},
		{[]string{"Decision", "properties", "reason", "enum"}, reasons},
		{[]string{"Request", "properties", "type", "enum"}, []any{"action", "noul", "choice", "score"}},
	} {
		if got := at(t, spec, append([]string{"components", "schemas"}, tc.path...)...); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%v: %v, want %v", tc.path, got, tc.want)
		}
	}
}
