package secret

import (
	"fmt"
	"strings"
	"testing"
)

func TestLabel(t *testing.T) {
	var s Scanner
	const a, b = "sk-TiY7rQaB3dE5gHaB3dE5", "sk-AAY7rQaB3dE5gHaB3dE5"
	label := func(in, want string, kinds ...Kind) {
		t.Helper()
		got, found := s.Label(in, true)
		var of []Kind
		for _, f := range found {
			of = append(of, f.Kind)
		}
		if got != want || fmt.Sprint(of) != fmt.Sprint(kinds) {
			t.Errorf("%s: %s %v, want %s %v", in, got, of, want, kinds)
		}
	}
	for range 2 {
		label("allow", "allow")
		label("review-by-hand", "review-by-hand")
		label("[redacted:api-key]#2", "[redacted:api-key]#2") // of an earlier recording
		label(a, "[redacted:api-key]", APIKey)
		label("to "+a, "to [redacted:api-key]", APIKey)
		label(b, "[redacted:api-key]#3", APIKey)
		label(a, "[redacted:api-key]", APIKey)
		label("4111111111111111", "[redacted:card]", Card)
		label(`{"password":"x"}`, `{"password":"[redacted:credential]"}`, Credential)
	}
	s.Forget()
	label(b, "[redacted:api-key]", APIKey)
	for n := range 3 * maxClean {
		label(fmt.Sprint("ordinary-", n), fmt.Sprint("ordinary-", n))
		label(strings.Repeat("x", maxLabelLen)+fmt.Sprint(n), strings.Repeat("x", maxLabelLen)+fmt.Sprint(n))
	}
	if n := len(s.labels.clean); n > maxClean {
		t.Errorf("%d labels are remembered", n)
	}
	for n := range 2 * maxDirty {
		s.Label(fmt.Sprint(a, n), true)
	}
	if len(s.labels.dirty) > maxDirty || len(s.labels.used) > maxDirty {
		t.Errorf("%d labels with marks", len(s.labels.dirty))
	}
	text := strings.Clone("review-by-hand")
	s.Label(text, true)
	if n := testing.AllocsPerRun(100, func() { s.Label(text, true) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Marks are no findings, whatever the rules say of the words in them.
func TestMarksAreNoFindings(t *testing.T) {
	for _, k := range Kinds() {
		for _, form := range []string{"%s", `{"%s":1}`, `{"%s":"hunter2"}`, `{"a":"%s"}`, "%s: hunter2", "%s=hunter2", "%s=hunter2&a=b", `"%s": "hunter2"`,
			`{"name":"%s","value":"hunter2"}`, `["%s","hunter2ab22"]`, "password: %s", "https://%s@h.example/", "Bearer %s", "Authorization: %s", "<password>%s</password>", "--password %s",
			"curl -u %s https://h", `{"name":"password","value":"%s"}`, "a %s b@", "x-%s.com"} {
			text := fmt.Sprintf(form, Mark(k))
			var s Scanner
			if got, found := s.Text(text); got != text || len(found) > 0 {
				t.Errorf("%s: %s %v", text, got, found)
			}
			if got, found := s.Label(text, true); got != text || len(found) > 0 {
				t.Errorf("label %s: %s %v", text, got, found)
			}
		}
	}
}

// What a free text names is looked for in what follows, with or without its scheme.
func TestEchoesOfFreeText(t *testing.T) {
	const value = "zX81kk02qq"
	for _, in := range []string{"authorization: " + value + "\r\nHost: x", `{"note":"authorization: ` + value + `\r\nHost: x"}`, `{"note":"Authorization: Token ` + value + `"}`,
		"Proxy-Authorization: Bearer " + value + "\n", `{"Authorization":"Bearer ` + value + `"}`, "Cookie: a=1; sid=" + value + "\n", "see Bearer " + value,
		"https://ada:" + value + "@h.example", "https://h/?a=b&token=" + value, `{"u":"https://h/?token=%7A` + value[1:] + `"}`, `["authorization: \u007aX81kk02qq"]`, "authorization=" + value} {
		var s Scanner
		if _, _, _, err := s.Body([]byte(in), Whole); err != nil {
			t.Fatal(err)
		}
		got, _, _, err := s.Body([]byte(`{"a":{"b":["you sent `+value+`."]}}`), Whole)
		if err != nil || string(got) != `{"a":{"b":["you sent [redacted:credential]."]}}` {
			t.Errorf("after %s: %s, %v", in, got, err)
		}
	}
}
