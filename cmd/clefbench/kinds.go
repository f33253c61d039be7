package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/clefbench/clefbench/backends"
	"github.com/clefbench/clefbench/backends/cedar"
	"github.com/clefbench/clefbench/backends/cel"
	"github.com/clefbench/clefbench/backends/flash"
	"github.com/clefbench/clefbench/backends/model"
	"github.com/clefbench/clefbench/backends/remote"
	"github.com/clefbench/clefbench/backends/rules"
	"github.com/clefbench/clefbench/backends/strategy"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/replay"
)

// kinds is the list of engines that this program holds.
func kinds() map[string]backends.Kind {
	return map[string]backends.Kind{
		"rules":    {File: "rules.yaml", Options: []string{"disable"}, Open: openRules},
		"strategy": {File: "strategy.yaml", Open: openStrategy},
		"flash": {File: "flash.cfb", Open: func(_ context.Context, s backends.Source) (decision.Backend, error) {
			return flash.Open(s.Path, s.Data)
		}},
		"model": {File: "model.json", Open: func(_ context.Context, s backends.Source) (decision.Backend, error) {
			return openModel(s.Path, s.Data, s.Schema)
		}},
		"cel":    {File: "cel.yaml", Options: []string{"stages"}, Open: openCEL},
		"cedar":  {File: "cedar.yaml", Options: []string{"stages"}, Open: openCedar},
		"decide": {Open: openDecide},
	}
}

func kindNames() string {
	return strings.Join(append(slices.Sorted(maps.Keys(kinds())), replay.RecordedKind), ", ")
}

// stages reads ?stages=on, with which an engine times its parts.
func stages(s backends.Source) (bool, error) {
	switch v := s.Options.Get("stages"); v {
	case "", "off":
		return false, nil
	case "on":
		return true, nil
	default:
		return false, fmt.Errorf("%w: stages is on or off, not %q", backends.ErrSpec, v)
	}
}

func openCEL(_ context.Context, s backends.Source) (decision.Backend, error) {
	timed, err := stages(s)
	if err != nil {
		return nil, err
	}
	return cel.Compile(s.Path, s.Data, s.Schema, cel.Options{Stages: timed})
}

// openCedar also reads the policies, which stand beside their mapping.
func openCedar(_ context.Context, s backends.Source) (decision.Backend, error) {
	timed, err := stages(s)
	if err != nil {
		return nil, err
	}
	name, err := cedar.PoliciesOf(s.Path, s.Data)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(filepath.Dir(s.Path), filepath.FromSlash(name))
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: policies: %w", s.Path, err)
	}
	return cedar.Compile(s.Path, s.Data, path, data, cedar.Options{Stages: timed})
}

// openRules also follows the kill switch file of ?disable=FILE.
func openRules(_ context.Context, s backends.Source) (decision.Backend, error) {
	e, err := rules.Compile(s.Path, s.Data, s.Schema)
	if err != nil {
		return nil, err
	}
	if path := s.Options.Get("disable"); path != "" {
		report := func(err error) { fmt.Fprintf(os.Stderr, "clefbench: backend %s: %v\n", s.Name, err) }
		if err := e.Follow(path, time.Second, report); err != nil {
			return nil, errors.Join(err, e.Close(context.Background()))
		}
	}
	return e, nil
}

// openModel also gives the model its directory, for the file of its trees; nothing outside
// of that directory is read.
func openModel(path string, data []byte, schema *decision.Schema) (decision.Backend, error) {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	m, err := model.CompileIn(dir.FS(), path, data, schema)
	if err != nil {
		return nil, err // not m: a nil *Model is no nil Backend
	}
	return m, nil
}

// openStrategy also opens the model that the strategy falls back to, which stands
// beside it.
func openStrategy(_ context.Context, s backends.Source) (decision.Backend, error) {
	name, err := strategy.ModelOf(s.Path, s.Data)
	if err != nil {
		return nil, err
	}
	var m decision.Backend
	if name != "" {
		path := filepath.Join(filepath.Dir(s.Path), filepath.FromSlash(name))
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: fallback model: %w", s.Path, err)
		}
		if m, err = openModel(path, data, s.Schema); err != nil {
			return nil, err
		}
	}
	return strategy.Compile(s.Path, s.Data, s.Schema, m)
}

func openDecide(_ context.Context, s backends.Source) (decision.Backend, error) {
	opts, err := remote.ParseOptions(s.Name, s.Target, s.Options)
	if err != nil {
		return nil, err
	}
	return remote.NewClient(opts)
}

// backendError gives an error of opening a backend its exit code.
func backendError(s backends.Spec, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail(exitUsage, "the path is relative to the working directory", "backend %s: %w", s.Name, err)
	case errors.Is(err, flash.ErrCorrupt):
		return err
	}
	if code, hint := classify(err); code == exitUsage {
		return usage(err, hint)
	}
	return usage(fmt.Errorf("backend %s: %w", s.Name, err), "kinds: "+kindNames())
}
