package secret

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ordinaryBody is a request of 377 bytes without secrets.
const ordinaryBody = `{"scenario":"edge-routing","request_id":"550e8400-e29b-41d4-a716-446655440000","attributes":{"method":"GET","path":"/api/v1/items/4711",` +
	`"headers":{"user-agent":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36","accept":"application/json"},"metrics":{"edge_error_rate_1m":0.0125,` +
	`"latency_p99_ms":182.5,"tokens":512}},"candidates":["allow","challenge","deny"],"now":"2024-05-05T12:34:56Z"}`

// alternation is what one would write with a regular expression: the same kinds, as
// closely as one expression can say them.
var alternation = regexp.MustCompile(`\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|-----BEGIN [A-Z ]*PRIVATE KEY|\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b|\b(?:gh[pousr]_|github_pat_|npm_|hf_|sk_live_|sk_test_|rk_live_|rk_test_)\w{10,}` +
	`|\b(?:glpat-|xox[abprsecd]-|xapp-|sk-|AIza|GOCSPX-|ya29\.|SG\.|hvs\.|pypi-AgE)[\w.-]{10,}|(?i:\b(?:bearer|basic)\s+[\w.~+/=-]{8,})|(?i:\b(?:authorization|cookie|set-cookie)"?\s*[:=]\s*"?[^\r\n"]+)` +
	`|(?i:\b[\w.-]*(?:password|passwd|pwd|secret|api_?key|token)"?\s*[:=]\s*"?[^\s"&]+)|\b[2-6]\d{3}(?:[ -]?\d{4}){2}[ -]?\d{4}\b|[\w.+%-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}|://[^\s/@:]*:[^\s/@]+@`)

func prose(n int) []byte {
	const text = "The router sends a request to the region with the lowest queue, unless the budget of the tenant is used up; then it answers 429 with Retry-After: 30.\n"
	return []byte(strings.Repeat(text, n/len(text)+1)[:n])
}

func BenchmarkFind(b *testing.B) {
	for _, in := range []struct {
		name string
		text []byte
	}{{"body377", []byte(ordinaryBody)}, {"prose64K", prose(64 << 10)}, {"json64K", bytes.Repeat([]byte(ordinaryBody+"\n"), 173)}} {
		b.Run(in.name+"/scanner", func(b *testing.B) {
			b.SetBytes(int64(len(in.text)))
			b.ReportAllocs()
			for b.Loop() {
				if len(Find(nil, in.text)) > 0 {
					b.Fatal("found")
				}
			}
		})
		b.Run(in.name+"/regexp", func(b *testing.B) {
			b.SetBytes(int64(len(in.text)))
			for b.Loop() {
				alternation.FindAllIndex(in.text, -1)
			}
		})
	}
}

func BenchmarkBody(b *testing.B) {
	clean, dirty := []byte(ordinaryBody), []byte(strings.Replace(ordinaryBody, "Linux", "ada@example.com", 1))
	escaped := []byte(`{"messages":[{"role":"user","content":"` + strings.ReplaceAll(string(prose(8<<10)), "\n", `\n`) + `"}]}`)
	for _, in := range []struct {
		name string
		body []byte
	}{{"clean377", clean}, {"email377", dirty}, {"escaped8K", escaped}} {
		b.Run(in.name, func(b *testing.B) {
			var s Scanner
			b.SetBytes(int64(len(in.body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, _, err := s.Body(in.body, Whole); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What is found in the data sets that are at hand, all public: most of it is there (mail
// addresses of a set about fraud), the rest is wrong. Set CLEFBENCH_DATA to a directory of
// CSV and JSON lines; -v prints the counts.
func TestFindInRealData(t *testing.T) {
	dir := os.Getenv("CLEFBENCH_DATA")
	if dir == "" {
		t.Skip("CLEFBENCH_DATA is not set")
	}
	counts, lines, size, headers := map[Kind]int{}, 0, 0, 0
	var examples []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(".csv .jsonl .gz", filepath.Ext(path)) {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		var r io.Reader = file
		if filepath.Ext(path) == ".gz" {
			if r, err = gzip.NewReader(file); err != nil {
				return err
			}
		}
		var s Scanner
		in := bufio.NewScanner(r)
		in.Buffer(nil, 16<<20)
		for in.Scan() {
			lines, size = lines+1, size+len(in.Bytes())
			clean, found := s.Text(in.Text())
			for _, f := range found {
				counts[f.Kind]++
				if f.Kind == Authorization && strings.HasPrefix(f.Pointer, "/rawHeaders/") {
					headers++
				} else if f.Kind != Email && len(examples) < 30 {
					examples = append(examples, string(f.Kind)+" in "+filepath.Base(path)+": "+clean[:min(len(clean), 300)])
				}
			}
		}
		return in.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d lines, %d bytes: %v", lines, size, counts)
	for _, e := range examples {
		t.Log(e)
	}
	wrong := 0
	for k, n := range counts {
		if k != Email {
			wrong += n
		}
	}
	wrong -= headers // of requests that were caught with their headers: those are right
	if wrong*10_000 > lines {
		t.Errorf("%d findings that are no mail address in %d lines", wrong, lines)
	}
}
