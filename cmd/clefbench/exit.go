package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/clefbench/clefbench/backends/flash"
	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/datasets/runs"
	"github.com/clefbench/clefbench/internal/document"
	"github.com/clefbench/clefbench/replay"
	"github.com/clefbench/clefbench/reports"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// The exit codes: one list, in one place.
const (
	exitOK          = 0
	exitFailed      = 1   // gate not passed, or verification failed
	exitUsage       = 2   // usage or configuration
	exitData        = 3   // data unreadable, unwritable or corrupt, and whatever has no code of its own
	exitBackend     = 4   // a well-formed backend that fails to start or to answer at all
	exitNoVerdict   = 5   // empty data set, too little data, nothing selected
	exitInvalid     = 6   // measurement invalid
	exitTryAgain    = 75  // a shard that may be tried again
	exitInterrupted = 130 // interrupted; the partial result is written and marked
)

const exitCodeHelp = `0 ok; 1 gate not passed or verification failed; 2 usage or
configuration; 3 data unreadable, unwritable or corrupt; 4 a backend that fails to start or to
answer at all; 5 no verdict (empty data set, nothing selected); 6 measurement
invalid; 75 try again; 130 interrupted, the partial result is written and marked.`

// failure is an error with an exit code and a hint.
type failure struct {
	code int
	err  error
	hint string
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func usage(err error, hint string) error { return &failure{exitUsage, err, hint} }

func fail(code int, hint, format string, args ...any) error {
	return &failure{code, fmt.Errorf(format, args...), hint}
}

// report prints an error as "clefbench: ..." and "hint: ..." and returns its exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	code, hint := classify(err)
	for line := range strings.Lines(strings.TrimRight(err.Error(), "\n")) {
		fmt.Fprintf(a.stderr, "clefbench: %s\n", strings.TrimRight(line, "\n"))
	}
	if hint != "" {
		fmt.Fprintf(a.stderr, "hint: %s\n", hint)
	}
	return code
}

// classify gives an error its exit code, most specific first.
func classify(err error) (code int, hint string) {
	var f *failure
	var problems document.Problems
	switch {
	case errors.As(err, &f):
		return f.code, f.hint
	case interrupted(err):
		return exitInterrupted, ""
	case errors.As(err, &problems):
		return exitUsage, problems.Hint()
	case errors.Is(err, arrowfile.ErrCorrupt):
		return exitData, "'clefbench datasets verify' lists every damaged file"
	case errors.Is(err, flash.ErrCorrupt):
		return exitData, "compile the table again with 'clefbench rules compile'"
	case errors.Is(err, arrowfile.ErrSchema), errors.Is(err, arrowfile.ErrVersion):
		return exitData, "a data set holds segments of snapshots; a run is for 'report' and 'score'"
	case errors.Is(err, datasets.ErrEmpty), errors.Is(err, runs.ErrEmpty), errors.Is(err, scoring.ErrEmpty):
		return exitNoVerdict, ""
	case errors.Is(err, replay.ErrPlan), errors.Is(err, reports.ErrFormat):
		return exitUsage, ""
	case errors.Is(err, runs.ErrExists):
		return exitUsage, "give another -o, or remove it"
	case errors.Is(err, runs.ErrNotRun):
		return exitData, "a run is what 'clefbench replay -o RUN' wrote"
	}
	if strings.HasPrefix(err.Error(), "unknown command") {
		return exitUsage, "run 'clefbench --help'"
	}
	// Never 1: what nobody foresaw must not read as a gate that was not passed.
	return exitData, ""
}
