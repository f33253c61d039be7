package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// What is planted: one secret that only its name gives away, one that only its prefix
// does, and one by its check digit.
const (
	plantedPassword = "plantedpassphrase"
	plantedKey      = "sk-proj-Pl4nt3dK3y0123456789abcdef"
	plantedCard     = "5555555555554444"
	// plantedOpaque has no form of its own; what names it in a request does so once.
	plantedOpaque = "zX81kk02qqPl4nt3d"
)

// forms are the ways in which a secret could stand in a file: as it is, escaped, in
// hexadecimal, and in base64 at each of the three places in a group.
func forms(s string) (out [][]byte) {
	out = append(out, []byte(s), []byte(url.QueryEscape(s)), []byte(hex.EncodeToString([]byte(s))), []byte(strings.ToUpper(hex.EncodeToString([]byte(s)))))
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		for shift := range 3 {
			text := enc.EncodeToString([]byte(strings.Repeat("\x00", shift) + s))
			// The outer groups depend on what stands beside.
			out = append(out, []byte(text[4:len(text)-4]))
		}
	}
	return out
}

// written is everything that the files of a directory hold: their bytes, and behind every
// zstd frame what it decompresses to.
func written(t *testing.T, dir string) (all []byte) {
	t.Helper()
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	frames := 0
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data...)
		for at := 0; ; at++ {
			n := bytes.Index(data[at:], []byte{0x28, 0xb5, 0x2f, 0xfd})
			if n < 0 {
				break
			}
			at += n
			// A frame ends where it ends: what follows it in the file is not its own.
			r, err := zstd.NewReader(bytes.NewReader(data[at:]), zstd.WithDecoderConcurrency(1))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r)
			r.Close()
			if err == nil || len(text) > 0 {
				frames++
				all = append(all, text...)
			}
		}
	}
	if frames < 3 {
		t.Fatalf("%d frames", frames)
	}
	return all
}

// plant sends requests that carry the secrets in every way, through a recorder into files.
func plant(t *testing.T, dir string, raw bool) {
	t.Helper()
	w, err := arrowfile.Create(dir, arrowfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := func(name string) recorder.CaptureField {
		return recorder.CaptureField{Name: name, Type: decision.String}
	}
	rec, err := recorder.New(w, recorder.Options{Scenario: "s", EntityKey: []byte("0123456789abcdef"), Capture: recorder.Capture{
		Fields: []recorder.CaptureField{text("path"), text("method"), text("headers.referer"), text("headers.x-note"), text("query.q"), text("note")},
		Entity: recorder.EntitySource{Header: "Authorization"}, Input: true, Output: true, RawBodies: raw}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(rec.Middleware(http.HandlerFunc(unprocessable)))
	defer server.Close()
	for _, body := range []struct{ kind, text string }{
		{"application/json", `{"user":"ada","password":"` + plantedPassword + `","messages":[{"role":"user","content":"use ` + plantedKey + ` and pay with ` + plantedCard + `"}],"card":` + plantedCard + `}`},
		{"application/json", `{"p\u0061ssword":"plantedp\u0061ssphrase","nested":"{\"api_key\":\"` + plantedKey + `\"}","pan":"5555 5555 5555 4444 ` + strings.ReplaceAll(plantedCard, "4", `\u0034`) + `"}`},
		{"application/json", `{"password":"` + plantedPassword + `","cut":"` + strings.Repeat("x", recorder.DefaultMaxBody) + `"}`},
		{"application/json", `{"password":"` + plantedPassword},
		{"application/x-www-form-urlencoded", "password=" + plantedPassword + "&key=" + url.QueryEscape(plantedKey) + "&card=5555+5555%205555%2D4444"},
		{"text/plain", "password: " + `"` + plantedPassword + `", Authorization: Bearer ` + plantedKey + "\ncard " + plantedCard + "\n"},
		{"application/json", `{"log":{"entries":[{"request":{"headers":[{"name":"Authorization","value":"` + plantedOpaque + `"},{"value":"` + plantedPassword + `","name":"x-api-key"}]}}]},` +
			`"raw":["authorization","Bearer ` + plantedOpaque + `"],"env":[{"key":"password","value":"` + plantedPassword + `"}]}`},
		{"application/json", `{"note":"authorization: ` + plantedOpaque + `\r\nHost: x","` + plantedKey + `":1}`},
		{"text/plain", "<login><password>" + plantedPassword + "</password></login> run --password " + plantedOpaque + " --token=" + plantedOpaque +
			"\ncurl -u ada:" + plantedPassword + " https://h.example\n- name: DB_PASSWORD\n  value: " + plantedOpaque + "\npassword: |\n  " + plantedPassword + "\nauth: Token " + plantedOpaque + "\n"},
		{"application/octet-stream", "\x00\xff" + plantedPassword + plantedKey},
	} {
		q := url.Values{"q": {"see " + plantedKey}, "token": {plantedPassword}, "api_key": {plantedKey}}
		req, _ := http.NewRequest("POST", server.URL+"/v1/decide/"+plantedKey+"?"+q.Encode(), strings.NewReader(body.text))
		req.Header.Set("Content-Type", body.kind)
		req.Header.Set("Authorization", "Bearer "+plantedKey)
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("ada:"+plantedPassword)))
		req.Header.Set("Cookie", "sid="+plantedPassword)
		req.Header.Set("X-Api-Key", plantedKey)
		req.Header.Set("Referer", "https://ada:"+plantedPassword+"@h.example/x?token="+plantedKey)
		req.Header.Set("X-Note", "called with Bearer "+plantedKey+" for card "+plantedCard)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		echo, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnprocessableEntity || !bytes.Contains(echo, []byte("detail")) {
			t.Fatalf("%d %s", resp.StatusCode, echo)
		}
	}
	if err := rec.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// unprocessable answers as services do that validate: it repeats the input, whole and by
// field, and fails with an error that quotes it.
func unprocessable(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	rec := recorder.FromContext(r.Context())
	rec.SetAttr("note", decision.StringValue("upstream said {\"token\": \""+plantedKey+"\"}"))
	d := rec.Decision(plantedKey)
	d.SetActions("allow", plantedKey)
	d.Fail(decision.Error, "unprocessable", errors.Join(fmt.Errorf("Post %q: password=%s", r.URL, plantedPassword), fmt.Errorf("key %s", plantedKey)).Error())
	d.SetNonDeterminism(`{"looked_up":{"password":"` + plantedPassword + `","card":` + plantedCard + `}}`)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	input := string(body)
	if !strings.HasPrefix(input, "{") || !strings.HasSuffix(input, "}") {
		input = `"` + plantedKey + `"`
	}
	field := `"x"`
	if strings.Contains(string(body), `"password":"`+plantedPassword) {
		field = `"` + plantedPassword + `"`
	}
	fmt.Fprintf(w, `{"detail":[{"loc":["body"],"type":"missing","msg":"no action","input":%s},{"loc":["body","password"],"type":"string_too_short","input":%s}],"echo":{"deep":[%q]}}`, input, field, echoOf(body))
}

// echoOf is what an answer repeats of a request that has the opaque secret.
func echoOf(body []byte) string {
	if bytes.Contains(body, []byte(plantedOpaque)) {
		return "you sent " + plantedOpaque
	}
	return ""
}

// found names the secrets that stand in the bytes in any form.
func found(all []byte) (out []string) {
	for name, secret := range map[string]string{"password": plantedPassword, "key": plantedKey, "opaque": plantedOpaque, "card": plantedCard, "spaced card": "5555 5555 5555 4444"} {
		for i, form := range forms(secret) {
			if bytes.Contains(all, form) {
				out = append(out, fmt.Sprintf("%s in form %d", name, i))
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestPlantedSecretsAreInNoFile(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, false)
	all := written(t, dir)
	if got := found(all); got != nil {
		t.Errorf("written: %v", got)
	}
	for _, want := range []string{"no action", "string_too_short", `"role":"user"`, "[redacted:api-key]", "[redacted:card]", "input:/messages/0/content:api-key", "input:unparsable", "input:binary", "question:api-key", "candidates:api-key"} {
		if !bytes.Contains(all, []byte(want)) {
			t.Errorf("%s is not written: the search does not see what was recorded", want)
		}
	}
	ds, err := datasets.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	if report, err := ds.Scan(); err != nil || report.Places != 0 || report.Snapshots != 10 {
		t.Errorf("scan: %+v %v", report, err)
	}
}

// The search finds what is there: bodies that are kept raw hold what was planted.
func TestPlantedSecretsAreFoundWhereTheyAreKept(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, true)
	got := strings.Join(found(written(t, dir)), ", ")
	for _, want := range []string{"password in form 0", "key in form 0", "card in form 0"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not found: %s", want, got)
		}
	}
	for _, s := range []string{plantedPassword, plantedKey} {
		for shift := range 3 {
			for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
				if got := found([]byte(enc.EncodeToString([]byte("xyz"[:shift] + s + "tail")))); got == nil {
					t.Errorf("base64 of %s behind %d bytes is not found", s, shift)
				}
			}
		}
	}
}
