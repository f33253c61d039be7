package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/datasets"
)

func TestTheServiceRecordsWhatItDecides(t *testing.T) {
	dir := t.TempDir()
	service, rec, err := newService(dir)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(service)
	for _, agent := range []string{"curl/8", "somebot/1"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("User-Agent", agent)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	srv.Close()
	if err := rec.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	ds, err := datasets.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for s, err := range ds.Snapshots(datasets.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s.Attrs.Get("headers.user-agent").Str()+" "+s.Action)
	}
	if strings.Join(got, ", ") != "curl/8 allow, somebot/1 block" {
		t.Errorf("recorded %q", got)
	}
}

// What the README shows must be what is compiled here, up to the names of the service
// and the handling of errors.
func TestReadmeShowsThisProgram(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(readme), "```go\n")
	block, _, _ = strings.Cut(block, "```")
	if !ok {
		t.Fatal("the README shows no Go")
	}
	compiled := strings.Join(strings.Fields(string(program)), " ")
	shown := 0
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " // ")
		line = strings.ReplaceAll(line, `"snapshots"`, "dir")
		line = strings.TrimSuffix(strings.TrimPrefix(line, `http.Handle("/", `), ")")
		line = strings.TrimPrefix(line, "defer ")
		line = strings.TrimSuffix(line, "(context.Background()")
		if line = strings.TrimRight(line, ")"); line == "" || line == "}" {
			continue
		}
		shown++
		if !strings.Contains(compiled, strings.Join(strings.Fields(line), " ")) {
			t.Errorf("the README shows %q, which main.go does not have", line)
		}
	}
	if shown < 8 {
		t.Errorf("the README shows %d lines", shown)
	}
}
