package recorder

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/clefbench/clefbench/decision"
)

// SlogMapping says which attributes of a log record are which parts of a decision. A name
// is the attribute's key, after the keys of its groups: "decision.action" is action in
// the group decision. An empty name is not looked for.
type SlogMapping struct {
	// Message, when set, is the message that a record must have; Marker, when set, an
	// attribute that it must have. Without either, a record with Action or Status is a
	// decision.
	Message, Marker string
	// Level, when set, takes decisions from this level up also where the next handler does
	// not log them. Nil takes what the next handler takes.
	Level slog.Leveler

	// ID and RequestID are 36-character UUIDs; SourceID is any text.
	ID, RequestID, SourceID string
	Scenario, Question      string
	// Entity is hashed, never stored.
	Entity string
	// Candidates is a []string, a []decision.Candidate, or a text with commas between.
	Candidates string
	// Action alone means status ok. Status is as decision.ParseStatus reads it.
	Action, Status, Params    string
	Confidence, ConfidenceDef string
	// Reason is as decision.ParseReason reads it.
	Reason, Rule             string
	Backend, StrategyVersion string
	Applied                  string
	// Latency is a duration, or a whole number of nanoseconds.
	Latency    string
	Propensity string
	// Error is any value, an error among them; its text is kept as by [Decision.Fail].
	Error, ErrorCode string
}

// DefaultSlogMapping names the attributes as JSON lines of 'clefbench record' do, each
// after the prefix: "" for attributes at the top, "decision." for a group.
func DefaultSlogMapping(prefix string) SlogMapping {
	p := func(name string) string { return prefix + name }
	return SlogMapping{ID: p("id"), RequestID: p("request_id"), SourceID: p("source_id"), Scenario: p("scenario"),
		Question: p("question"), Entity: p("entity"), Candidates: p("candidates"), Action: p("action"), Status: p("status"),
		Params: p("params"), Confidence: p("confidence"), ConfidenceDef: p("confidence_def"), Reason: p("reason"),
		Rule: p("rule_id"), Backend: p("backend"), StrategyVersion: p("strategy_version"), Applied: p("applied"),
		Latency: p("latency"), Propensity: p("propensity"), Error: p("error"), ErrorCode: p("error_code")}
}

// slogPart is a part of a decision that a log attribute can give.
type slogPart uint8

const (
	slogMarker slogPart = iota
	slogID
	slogRequestID
	slogSourceID
	slogScenario
	slogQuestion
	slogEntity
	slogCandidates
	slogAction
	slogStatus
	slogParams
	slogConfidence
	slogConfidenceDef
	slogReason
	slogRule
	slogBackend
	slogStrategyVersion
	slogApplied
	slogLatency
	slogPropensity
	slogError
	slogErrorCode
	slogParts
)

func (m *SlogMapping) names() [slogParts]string {
	return [slogParts]string{m.Marker, m.ID, m.RequestID, m.SourceID, m.Scenario, m.Question, m.Entity, m.Candidates,
		m.Action, m.Status, m.Params, m.Confidence, m.ConfidenceDef, m.Reason, m.Rule, m.Backend, m.StrategyVersion,
		m.Applied, m.Latency, m.Propensity, m.Error, m.ErrorCode}
}

// slogNames is a compiled mapping, shared by all handlers that With makes of one.
type slogNames struct {
	SlogMapping
	r     *Recorder
	parts map[string][]slogPart
	attrs map[string]int // positions in the recorder's schema
	// groups are the keys of groups, with the dot, in which any of the names lies: others
	// are not entered, nor are their values computed.
	groups map[string]bool
}

// slogHandler passes every record on and makes rows of those that are decisions.
type slogHandler struct {
	next   slog.Handler
	names  *slogNames
	prefix string // open groups, each with a dot after it
	found  slogFound
}

// slogFound is what is known of a decision from attributes.
type slogFound struct {
	parts [slogParts]slog.Value
	has   [slogParts]bool
	attrs []slogAttr
}

type slogAttr struct {
	at int
	v  decision.Value
}

// NewSlogHandler returns a handler for services that log their decisions already: every
// record goes on to next as it came, and one that is a decision by the mapping becomes a
// row besides. Attributes that the capture list names, under the same dotted name, are
// attributes of the row. What the recorder does with the record neither fails nor changes
// what next returns.
//
// Inside a recording ([FromContext]) the record answers a question of that request, if
// nothing answered it before; else it is a request of its own, with entity and trace of
// the recording. A record whose mapped attributes do not parse is dropped and counted as
// invalid. A nil next keeps no log, a nil recorder records nothing.
func NewSlogHandler(r *Recorder, next slog.Handler, m SlogMapping) slog.Handler {
	if next == nil {
		next = noLog{}
	}
	if r == nil {
		return next
	}
	n := &slogNames{SlogMapping: m, r: r, parts: map[string][]slogPart{}, attrs: map[string]int{}, groups: map[string]bool{}}
	for part, name := range m.names() {
		if name != "" {
			n.parts[name] = append(n.parts[name], slogPart(part))
			n.addGroups(name)
		}
	}
	for i, f := range r.plan.schema.Fields() {
		n.attrs[f.Name] = i
		n.addGroups(f.Name)
	}
	return &slogHandler{next: next, names: n}
}

func (n *slogNames) addGroups(name string) {
	for i, c := range []byte(name) {
		if c == '.' {
			n.groups[name[:i+1]] = true
		}
	}
}

// noLog takes every record and keeps none; slog.DiscardHandler takes none.
type noLog struct{}

func (noLog) Enabled(context.Context, slog.Level) bool  { return true }
func (noLog) Handle(context.Context, slog.Record) error { return nil }
func (h noLog) WithAttrs([]slog.Attr) slog.Handler      { return h }
func (h noLog) WithGroup(string) slog.Handler           { return h }

// Enabled implements [slog.Handler].
func (h *slogHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return h.next.Enabled(ctx, l) || h.takes(l)
}

func (h *slogHandler) takes(l slog.Level) bool {
	return h.names.Level != nil && l >= h.names.Level.Level()
}

// Handle implements [slog.Handler]; the error is next's.
func (h *slogHandler) Handle(ctx context.Context, rec slog.Record) error {
	h.record(ctx, &rec)
	if h.names.Level != nil && !h.next.Enabled(ctx, rec.Level) {
		return nil // Enabled let it through for the row only
	}
	return h.next.Handle(ctx, rec)
}

// WithGroup implements [slog.Handler].
func (h *slogHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	c := *h
	c.next, c.prefix = h.next.WithGroup(name), h.prefix+name+"."
	return &c
}

// WithAttrs implements [slog.Handler].
func (h *slogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	c := *h
	c.next = h.next.WithAttrs(attrs)
	c.found.attrs = append([]slogAttr(nil), h.found.attrs...)
	for _, a := range attrs {
		c.found.take(h.names, h.prefix, a, 0)
	}
	return &c
}

// maxSlogDepth bounds the groups that are entered; the mapping's own depth does so
// already, unless a name of it is made of dots.
const maxSlogDepth = 16

// take keeps an attribute that is mapped or listed, and looks into groups that hold any.
func (f *slogFound) take(n *slogNames, prefix string, a slog.Attr, depth int) {
	name := prefix + a.Key
	parts, at, listed := n.parts[name], 0, false
	if at, listed = n.attrs[name]; !listed && len(parts) == 0 && a.Key != "" && !n.groups[name+"."] {
		return
	}
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix = name + "."
		}
		if depth < maxSlogDepth {
			for _, in := range v.Group() {
				f.take(n, prefix, in, depth+1)
			}
		}
		return
	}
	for _, p := range parts {
		f.parts[p], f.has[p] = v, true
	}
	if listed {
		f.attrs = append(f.attrs, slogAttr{at, attrOf(v)})
	}
}

// attrOf makes an attribute of a log value: what is no bool, number or text is its text.
func attrOf(v slog.Value) decision.Value {
	switch v.Kind() {
	case slog.KindBool:
		return decision.BoolValue(v.Bool())
	case slog.KindInt64:
		return decision.IntValue(v.Int64())
	case slog.KindUint64:
		if u := v.Uint64(); u <= 1<<63-1 {
			return decision.IntValue(int64(u))
		}
		return decision.DoubleValue(float64(v.Uint64()))
	case slog.KindFloat64:
		return decision.DoubleValue(v.Float64())
	}
	if v.Kind() == slog.KindAny && v.Any() == nil {
		return decision.Value{}
	}
	return decision.StringValue(v.String())
}

// record makes a row of a record that is a decision. It works on the caller's goroutine,
// and whatever happens in it ends here.
func (h *slogHandler) record(ctx context.Context, rec *slog.Record) {
	n := h.names
	if n.Message != "" && rec.Message != n.Message {
		return
	}
	defer n.r.contain(1)
	found := h.found
	found.attrs = append([]slogAttr(nil), h.found.attrs...)
	rec.Attrs(func(a slog.Attr) bool {
		found.take(n, h.prefix, a, 0)
		return true
	})
	if n.Marker != "" && !found.has[slogMarker] || !found.has[slogAction] && !found.has[slogStatus] || n.r.bypass(ctx, 1) {
		return
	}
	d, err := found.decision()
	if err != nil {
		n.r.failed(fmt.Errorf("slog: %w", err))
		n.r.in.lost(DropInvalid, 1)
		return
	}
	found.hand(ctx, n.r, rec.Time, d)
}
