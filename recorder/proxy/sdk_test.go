package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

// sdkDir holds the official client in its own language: `npm ci` there installs it.
const sdkDir = "testdata/sdk"

// sdkEnv makes a missing client a failure instead of a skip, for CI.
const sdkEnv = "PROXY_REQUIRE_SDK"

func runSDK(t *testing.T, url string) string {
	t.Helper()
	_, noNode := exec.LookPath("node")
	_, noPackage := os.Stat(filepath.Join(sdkDir, "node_modules", "@typesafe-ai", "sdk"))
	if noNode != nil || noPackage != nil {
		if os.Getenv(sdkEnv) != "" {
			t.Fatalf("node: %v; package: %v", noNode, noPackage)
		}
		t.Skipf("no official client here: needs node and `npm ci` in %s", sdkDir)
	}
	cmd := exec.Command("node", filepath.Join(sdkDir, "client.mjs"), url)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	return string(out)
}

// stub answers as the service is documented to; a state of R429R529 gets those two
// statuses before an answer, one of E401 that status for ever.
func stub() http.HandlerFunc {
	var mu sync.Mutex
	seen := map[string]int{}
	directive := regexp.MustCompile(`"state":"([ER]\d+(?:R\d+)*)"`)
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/v1/models" {
			io.WriteString(w, `{"models":[{"name":"jev-latest","description":"d","release_date":"2026-09-15"}]}`)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		state := ""
		if m := directive.FindSubmatch(body); m != nil {
			state = string(m[1])
		}
		n := seen[state]
		seen[state]++
		w.Header().Set("X-Typesafe-Request-Id", fmt.Sprintf("req_%s_%d", state, n))
		code := 0
		if retries := strings.Split(strings.TrimPrefix(state, "R"), "R"); state != "" && n < len(retries) || strings.HasPrefix(state, "E") {
			fmt.Sscan(strings.TrimPrefix(retries[min(n, len(retries)-1)], "E"), &code)
		}
		switch code {
		case 0:
			if state == "" {
				io.WriteString(w, `{"model":"jev-1.13.0","answers":{"s":{"type":"score","score":0.45,"confidence":0.4,"legend":{"1":{"what":"mid"},"0":"low","2":"high"},"probabilities":{"2":0.05,"0":0.6,"1":0.35}},`+
					`"z_last":{"type":"choice","choice":"zeta","confidence":0.9,"probabilities":{"mid":0.07,"zeta":0.93,"alpha":0}},"a_first":{"type":"noul","noul":0.98}},"usage":{"input_tokens":951,"output_tokens":90}}`)
				return
			}
			io.WriteString(w, `{"model":"jev-1.13.0","answers":{"q":{"type":"noul","noul":0.25}},"usage":{"input_tokens":9,"output_tokens":1}}`)
		case 422:
			w.WriteHeader(422)
			fmt.Fprintf(w, `{"detail":[{"loc":["body","state"],"msg":"bad %s","type":"string_type","input":%q}]}`, state, r.Header.Get("Authorization")+" planted-echo")
		default:
			w.Header().Set("Retry-After-Ms", "5")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"detail":{"error_type":"e%d","message":"no"}}`, code)
		}
	}
}

// What the official client sees is the same with the recorder and without, and its
// retries are one decision each.
func TestOfficialClientSeesNoDifference(t *testing.T) {
	direct := runSDK(t, serve(t, stub()))
	s := start(t, serve(t, stub()))
	through := runSDK(t, s.url)
	if direct != through || strings.Count(direct, "\n") != 11 {
		t.Errorf("directly\n%s\nthrough the recorder\n%s", direct, through)
	}
	rows := s.rows()
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprintf("%s %s %v %s %d attempts", r.Question, r.Status, r.Action, r.ErrorCode, r.Attempts.V))
	}
	want := []string{"z_last ok zeta  1 attempts", "a_first ok true  1 attempts", "s ok 0  1 attempts",
		"q error  http-400 1 attempts", "q error  http-401 1 attempts", "q error  http-403 1 attempts", "q error  http-404 1 attempts", "q error  http-422 1 attempts",
		"q ok false  2 attempts", "q ok false  2 attempts", "q ok false  3 attempts", "q error  http-500 3 attempts"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(rows) > 0 && rows[0].Status == decision.OK && !strings.HasPrefix(string(rows[0].Input), `{"state":{"b":1,"a":{"z":"Ünïcode `+"\u2028"+` <b>&</b>"}}`) {
		t.Errorf("input %s", rows[0].Input)
	}
	if out := written(rows); bytes.Contains(out, []byte("planted-")) {
		t.Errorf("a secret was written: %s", out)
	}
	if st := s.proxy.Stats(); st.Passed != 1 || st.Attempts-st.Retries != st.Decisions {
		t.Errorf("%+v", st)
	}
}
