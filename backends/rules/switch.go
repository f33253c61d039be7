package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
