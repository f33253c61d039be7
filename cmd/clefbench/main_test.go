package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"clefbench": main, "decider-service": deciderService})
}

// The command's behaviour stands in scripts: testdata/script/*.txtar.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":        exits,
			"corrupt":      corrupt,
			"sameaccuracy": sameAccuracy,
			"traffic":      traffic,
			"label":        label,
		},
	})
}

// exits CODE COMMAND... runs a command and checks its exit code; testscript's own exec
// knows only zero and not zero. What it printed is there for stdout and stderr.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if want := args[0]; want != strconv.Itoa(code) {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
}

// corrupt FILE flips a bit in the middle of a file.
func corrupt(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		matches, err := filepath.Glob(ts.MkAbs(name))
		ts.Check(err)
		if len(matches) == 0 {
			ts.Fatalf("no file %s", name)
		}
		data, err := os.ReadFile(matches[0])
		ts.Check(err)
		data[len(data)/2] ^= 4
		ts.Check(os.WriteFile(matches[0], data, 0o666))
	}
}

// sameAccuracy A.json B.json compares what does not depend on the clock, bit for bit.
func sameAccuracy(ts *testscript.TestScript, _ bool, args []string) {
	var got []string
	for _, name := range args {
		var card struct {
			Backends []struct {
				Name       string
				Categories struct{ Accuracy json.RawMessage }
				Counts     json.RawMessage
				Scenarios  map[string]struct{ Confusion json.RawMessage }
			}
		}
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(name)), &card))
		if len(card.Backends) != 2 || !strings.Contains(string(card.Backends[0].Categories.Accuracy), `"value": 7`) {
			ts.Fatalf("%s has no accuracy to compare", name)
		}
		text, err := json.Marshal(card)
		ts.Check(err)
		got = append(got, string(text))
	}
	if len(got) != 2 || got[0] != got[1] {
		ts.Fatalf("two replays under one seed differ:\n%s", strings.Join(got, "\n"))
	}
}

// jsonNames lists the JSON field names of a struct.
func jsonNames(v any) []string {
	var out []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous {
			out = append(out, name)
		}
	}
	return out
}
