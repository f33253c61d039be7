package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// blocks returns the console blocks of a Markdown file: each is a command after "$ " and
// the output that the text promises.
func blocks(markdown string) (out []struct{ command, want string }) {
	for _, part := range strings.Split(markdown, "```console\n")[1:] {
		text, _, _ := strings.Cut(part, "```")
		for _, one := range strings.Split("\n"+text, "\n$ ")[1:] {
			command, want, _ := strings.Cut(one, "\n")
			for strings.HasSuffix(command, "\\") {
				var more string
				more, want, _ = strings.Cut(want, "\n")
				command = strings.TrimSuffix(command, "\\") + strings.TrimSpace(more)
			}
			out = append(out, struct{ command, want string }{command, want})
		}
	}
	return out
}

// measured stands for whatever a run measured: numbers, durations, places, footnotes, and
// which scenario came out worst.
var measured = regexp.MustCompile(`\b[0-9a-f]{64}\b|[-+]?[0-9][0-9.,]*( ns| µs| ms| s)?|\b(api-abuse|edge-routing|fraud)\b|\bns\b|\bµs\b|\bms\b|=`)

// shape reduces a line to what does not depend on the run.
func shape(line string) string {
	line = measured.ReplaceAllString(line, "#")
	line = regexp.MustCompile(`[\s#\[\](),─%-]+`).ReplaceAllString(line, " ")
	return strings.TrimSpace(line)
}

// Every command that the README shows is run, in one directory and in its order, and
// every line that it promises must come, up to what was measured.
func TestReadmeBlocks(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the whole demo")
	}
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	list := blocks(string(readme))
	if len(list) < 4 {
		t.Fatalf("the README shows %d commands", len(list))
	}
	dir := t.TempDir()
	for _, b := range list {
		words := strings.Fields(b.command)
		if words[0] != "clefbench" {
			t.Errorf("%q is no clefbench command", b.command)
			continue
		}
		cmd := exec.CommandContext(context.Background(), "sh", "-c", b.command)
		cmd.Dir = dir
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("$ %s: %v\n%s", b.command, err, stderr.Bytes())
		}
		var got []string
		for line := range strings.Lines(stdout.String()) {
			got = append(got, shape(line))
		}
		for line := range strings.Lines(b.want) {
			if want := shape(line); want != "" && want != "..." && !slices.Contains(got, want) {
				t.Errorf("$ %s\ndoes not print %q\n(as %q)", b.command, strings.TrimSpace(line), want)
			}
		}
	}
}

func TestReadmeTestCanFail(t *testing.T) {
	list := blocks("text\n```console\n$ clefbench a \\\n    b\nout 1\n$ clefbench c\n```\n")
	if len(list) != 2 || list[0].command != "clefbench a b" || list[0].want != "out 1" || list[1].command != "clefbench c" {
		t.Fatalf("blocks: %+v", list)
	}
	if shape(" 1=     rules (2)  80.7 [79.1, 82.2]  330 ns") != shape(" 3     rules (2, 6)  9 [1, 22]  1.2 µs") {
		t.Error("measured numbers matter")
	}
	if shape("rules 80.7") == shape("flash 80.7") || shape("total NA") == shape("total 80") {
		t.Error("words do not matter")
	}
}
