package reports

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with testdata/name, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); run with -update if that is right:\n%s", name, diff)
	}
}

func TestTextGolden(t *testing.T) {
	for name, card := range cards() {
		for _, o := range []struct {
			suffix string
			Options
		}{
			{".txt", Options{}},
			{".80.txt", Options{Width: 80}},
			{".brief.txt", Options{Brief: true}},
			{".120.color.txt", Options{Width: 120, Color: true, Title: "edge, week 20", Generated: time.Date(2026, 5, 17, 10, 0, 0, 0, time.UTC)}},
		} {
			t.Run(name+o.suffix, func(t *testing.T) {
				var b bytes.Buffer
				if err := Text(&b, card, o.Options); err != nil {
					t.Fatal(err)
				}
				golden(t, name+o.suffix, b.Bytes())
			})
		}
	}
}

func TestMarkdownGolden(t *testing.T) {
	for name, card := range cards() {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := Markdown(&b, card, Options{}); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".md", b.Bytes())
		})
	}
}

// The same scorecard gives the same bytes: nothing depends on the order of a map.
func TestStable(t *testing.T) {
	for _, f := range Formats() {
		var first bytes.Buffer
		if err := Write(&first, f, hostileCard(), Options{Width: 100}); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			var again bytes.Buffer
			if err := Write(&again, f, hostileCard(), Options{Width: 100}); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first.Bytes(), again.Bytes()) {
				t.Fatalf("%s differs from one time to the next", f)
			}
		}
	}
}

// A terminal must not obey a name, and lines must not end in blanks.
func TestTextIsSafe(t *testing.T) {
	var b bytes.Buffer
	if err := Text(&b, hostileCard(), Options{Width: 100}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if strings.ContainsAny(line, "\x1b\u202e\r") {
			t.Errorf("control character in %q", line)
		}
		if line = strings.TrimSuffix(line, "\n"); strings.TrimRight(line, " ") != line {
			t.Errorf("trailing blank in %q", line)
		}
	}
}

func TestTextFits(t *testing.T) {
	for _, width := range []int{90, 100, 120, 160, 200} {
		var b bytes.Buffer
		if err := Text(&b, demoCard(), Options{Width: width}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := displayWidth(line); n > width {
				t.Errorf("width %d: %d columns in %q", width, n, line)
			}
		}
	}
}

// Every reference points to a footnote, every footnote is there once.
func TestFootnotesResolve(t *testing.T) {
	for name, card := range cards() {
		p := layOut(card, Options{})
		used := map[int]bool{}
		note := func(refs []int) {
			for _, r := range refs {
				used[r] = true
				if r < 1 || r > len(p.notes) {
					t.Errorf("%s: reference to footnote %d of %d", name, r, len(p.notes))
				}
			}
		}
		for _, s := range p.sections {
			note(s.refs)
			for _, row := range s.rows {
				if len(row) != len(s.columns) {
					t.Errorf("%s: %s: %d cells in %d columns", name, s.title, len(row), len(s.columns))
				}
				for _, c := range row {
					note(c.refs)
				}
			}
		}
		seen := map[string]bool{}
		for i, n := range p.notes {
			if seen[n.text] {
				t.Errorf("%s: footnote %q stands twice", name, n.text)
			}
			seen[n.text] = true
			if !used[i+1] {
				t.Errorf("%s: nothing refers to footnote %d %q", name, i+1, n)
			}
		}
		for _, w := range card.Warnings {
			if w.Text != "" && !seen[clean(w.Text)] {
				t.Errorf("%s: warning %q is not printed", name, w.Text)
			}
		}
	}
}

type failingWriter struct{ after int }

var errDisk = errors.New("disk full")

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.after -= len(p); w.after < 0 {
		return 0, errDisk
	}
	return len(p), nil
}

func TestWriteErrors(t *testing.T) {
	for _, f := range Formats() {
		for _, after := range []int{0, 5000} {
			if err := Write(&failingWriter{after}, f, demoCard(), Options{}); !errors.Is(err, errDisk) {
				t.Errorf("%s after %d bytes: error %v", f, after, err)
			}
		}
	}
	if err := Write(io.Discard, "pdf", demoCard(), Options{}); !errors.Is(err, ErrFormat) {
		t.Errorf("pdf: %v", err)
	}
}
