package rules

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// everyRule stands for all rules of a file in [Engine.Disable].
const everyRule = "*"

// ErrNoRule is wrapped by [Engine.Disable] for an id that no rule has.
var ErrNoRule = errors.New("no such rule")

// Disable is the kill switch: from the next decision on, the rules with these ids are
// not there, "*" meaning every one; the file's fallback and the other rules go on. It
// replaces what an earlier call switched off, so that without ids it switches all rules on
// again that the file has on. Decisions under way keep the rules they began with. The ids
// stand in the strategy version of every answer from then on, because the file alone no
// longer says what decided.
//
// An id that no rule has is an error that wraps [ErrNoRule]; the other ids are switched
// off all the same.
func (e *Engine) Disable(ids ...string) error {
	off := map[string]bool{}
	var unknown []string
	for _, id := range ids {
		if id != everyRule && !slices.ContainsFunc(e.file.rules, func(r rule) bool { return r.id == id }) {
			unknown = append(unknown, id)
			continue
		}
		off[id] = true
	}
	e.program.Store(e.assemble(off))
	if len(unknown) > 0 {
		return fmt.Errorf("%w: %s", ErrNoRule, strings.Join(unknown, ", "))
	}
	return nil
}

// Disabled returns what [Engine.Disable] switched off, sorted.
func (e *Engine) Disabled() []string { return slices.Clone(e.program.Load().off) }

// maxSwitchFile bounds a kill switch file.
const maxSwitchFile = 1 << 20

// Follow makes the engine obey a kill switch file: it is read at once and then every
// interval until Close, and what it lists is disabled. A file that is not there switches
// nothing off. One that cannot be read, or that lists an id which no rule has, is reported,
// each text once in a row, and leaves the rest of the list in force. Follow may be called
// once; the error is that of the first reading.
func (e *Engine) Follow(path string, every time.Duration, report func(error)) error {
	f := &follower{engine: e, path: path, report: report, stop: make(chan struct{}), done: make(chan struct{})}
	if !e.follower.CompareAndSwap(nil, f) {
		return errors.New("the engine follows a file already")
	}
	err := f.read()
	go f.run(every)
	return err
}

// follower reads a kill switch file again and again.
type follower struct {
	engine     *Engine
	path       string
	report     func(error)
	said       string
	last       string
	stop, done chan struct{}
	once       sync.Once
}

func (f *follower) run(every time.Duration) {
	defer close(f.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-tick.C:
			f.note(f.read())
		}
	}
}

// read looks at the file, and at the engine only when its text has changed.
func (f *follower) read() error {
	text, err := readSwitch(f.path)
	if err != nil || text == f.last {
		return err
	}
	f.last = text
	if err := f.engine.Disable(ParseDisabled(text)...); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

func (f *follower) note(err error) {
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said != f.said && err != nil && f.report != nil {
		f.report(err)
	}
	f.said = said
}

func readSwitch(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSwitchFile+1))
	if err == nil && len(data) > maxSwitchFile {
		err = fmt.Errorf("%s: more than %d bytes", path, maxSwitchFile)
	}
	return string(data), err
}

func (f *follower) close() {
	if f != nil {
		f.once.Do(func() { close(f.stop) })
		<-f.done
	}
}

// ParseDisabled reads the contents of a kill switch file: one rule id a line; blank lines
// and what follows a # at the start of a line are left out.
func ParseDisabled(text string) []string {
	var ids []string
	for line := range strings.Lines(text) {
		if id := strings.TrimSpace(line); id != "" && !strings.HasPrefix(id, "#") {
			ids = append(ids, id)
		}
	}
	return ids
}
