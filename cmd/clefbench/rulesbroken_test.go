package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/internal/document"
)

// wanted is a finding that a file of testdata/broken names itself, in its last lines or,
// where JSON has no comments, in a file beside it:
//
//	# want LINE:COLUMN SEVERITY: part of the message | part of the hint
var wanted = regexp.MustCompile(`(?m)^# want (\d+:\d+) (error|warning): (.*?) \| (.*)$`)

// The mistakes that people make are each found where they are, with a hint that helps.
// What is wanted was written by hand.
func TestBrokenFiles(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "broken", "*"))
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, name := range names {
		if strings.HasSuffix(name, ".want") {
			continue
		}
		files++
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			beside, _ := os.ReadFile(name + ".want")
			want := wanted.FindAllStringSubmatch(string(data)+string(beside), -1)
			_, got := checkFile(name, data, nil)
			got.Sort()
			for _, bad := range unlike(got, want) {
				t.Error(bad)
			}
		})
	}
	if files < 40 {
		t.Errorf("%d files, want 40", files)
	}
}

// unlike compares findings with what is wanted, one by one.
func unlike(got document.Problems, want [][]string) []string {
	var bad []string
	if len(want) == 0 || len(got) != len(want) {
		bad = append(bad, fmt.Sprintf("%d findings, want %d", len(got), len(want)))
	}
	for i, p := range got {
		text := fmt.Sprintf("%d:%d %s: %s (%s)", p.Pos.Line, p.Pos.Column, severity(p), p.Message, p.Hint)
		switch {
		case i >= len(want):
			bad = append(bad, "unwanted "+text)
		case fmt.Sprintf("%d:%d", p.Pos.Line, p.Pos.Column) != want[i][1] || severity(p) != want[i][2],
			!strings.Contains(p.Message, want[i][3]), p.Hint == "" || !strings.Contains(p.Hint, want[i][4]):
			bad = append(bad, fmt.Sprintf("got  %s\nwant %s", text, want[i][0]))
		}
	}
	return bad
}

func TestBrokenFilesTestCanFail(t *testing.T) {
	p := &document.Problem{Message: "unknown field", Hint: "did you mean"}
	p.Pos.Line, p.Pos.Column = 2, 3
	for want, fails := range map[string]bool{
		"# want 2:3 error: unknown field | did you mean": false, "# want 2:4 error: unknown field | did you mean": true,
		"# want 2:3 warning: unknown field | did you mean": true, "# want 2:3 error: missing | did": true, "# want 2:3 error: unknown | add": true, "": true,
	} {
		if got := unlike(document.Problems{p}, wanted.FindAllStringSubmatch(want, -1)); (len(got) > 0) != fails {
			t.Errorf("%q: %v", want, got)
		}
	}
}
