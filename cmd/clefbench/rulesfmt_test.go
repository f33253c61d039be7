package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/clefbench/clefbench/internal/document"
)

// A formatted file has the findings of the file before, at other places, and gives the
// same actions in the same order.
func TestFormattedFilesMeanTheSame(t *testing.T) {
	names, err := filepath.Glob("../../backends/*/testdata/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		after, err := document.Format(name, data)
		if err != nil {
			continue // what is no YAML, and what is written in one line
		}
		compared++
		kind, before := checkFile(name, data, nil)
		if _, now := checkFile(name, after, nil); !slices.Equal(said(before), said(now)) {
			t.Errorf("%s: before\n%v\nnow\n%v", name, said(before), said(now))
		}
		if kind == "" || before.Errors() > 0 {
			continue
		}
		x, errX := actionsOf(kind, name, data, nil)
		y, errY := actionsOf(kind, name, after, nil)
		if errX != nil || errY != nil || len(x) != len(y) {
			t.Errorf("%s: %v %v, %v %v", name, x, errX, y, errY)
		}
	}
	if compared < 30 {
		t.Errorf("%d files compared", compared)
	}
}

// A rewritten file stays as private as it was.
func TestFmtKeepsPermissions(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.yaml")
	if err := os.WriteFile(name, []byte("version:  1\nrules: []\nfallback: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := run(t.Context(), []string{"rules", "fmt", "-w", name}, &app{stdout: io.Discard, stderr: io.Discard, lookupEnv: os.LookupEnv}); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if data, _ := os.ReadFile(name); string(data) != "version: 1\nrules: []\nfallback: x\n" {
		t.Errorf("%s", data)
	}
}

// said is what the findings say, without places and without lines that they cite.
func said(ps document.Problems) []string {
	var out []string
	for _, p := range ps {
		out = append(out, fmt.Sprint(p.Severity, " ", p.Hint))
	}
	return out
}
