package recorder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// The standard conformance suite sees the handler behind ours, with a mapping and a
// capture list that read the suite's own attributes.
func TestSlogHandlerConforms(t *testing.T) {
	for name, m := range map[string]SlogMapping{"default": DefaultSlogMapping(""),
		"reads the suite": {Action: "k", Scenario: "G.H.e", Level: slog.LevelInfo}} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(t, &memory{}, Options{Scenario: "s", Capture: Capture{Fields: []CaptureField{
				{Name: "a", Type: decision.String}, {Name: "G.c", Type: decision.String}, {Name: "G.a", Type: decision.String}}}})
			var buf bytes.Buffer
			slogtest.Run(t, func(*testing.T) slog.Handler {
				buf.Reset()
				return NewSlogHandler(r, slog.NewJSONHandler(&buf, nil), m)
			}, func(t *testing.T) map[string]any {
				var line map[string]any
				if err := json.Unmarshal(buf.Bytes(), &line); err != nil {
					t.Fatal(err)
				}
				return line
			})
			if p := r.Stats().Panics; p > 0 {
				t.Errorf("%d panics: %s", p, r.Stats().LastError)
			}
		})
	}
}

// What goes to next is byte for byte what next writes without the handler before it.
func TestSlogHandlerChangesNothing(t *testing.T) {
	write := func(wrap func(slog.Handler) slog.Handler) string {
		var buf bytes.Buffer
		noTime := func(g []string, a slog.Attr) slog.Attr {
			if len(g) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
		log := slog.New(wrap(slog.NewTextHandler(&buf, &slog.HandlerOptions{ReplaceAttr: noTime})))
		log.Info("plain")
		log.With("scenario", "fraud", "x", 1).WithGroup("g").With("y", 2).Info("deep", "action", "allow", slog.Group("h", "z", 3))
		log.WithGroup("").With().Error("fail", "error", errors.New("no"), "action", nil)
		log.Debug("below the level", "action", "allow")
		return buf.String()
	}
	r := newRecorder(t, &memory{}, Options{Scenario: "s"})
	want := write(func(h slog.Handler) slog.Handler { return h })
	for _, m := range []SlogMapping{{}, DefaultSlogMapping(""), {Action: "g.action", Level: slog.LevelDebug}} {
		if got := write(func(h slog.Handler) slog.Handler { return NewSlogHandler(r, h, m) }); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
	if h := slog.Handler(slog.DiscardHandler); NewSlogHandler(nil, h, SlogMapping{}) != h {
		t.Error("without a recorder the handler stands in the way")
	}
}

type lazy func() slog.Value

func (l lazy) LogValue() slog.Value { return l() }

func TestSlogDecisionBecomesRow(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{EntityKey: key, Capture: Capture{Fields: []CaptureField{
		{Name: "http.status", Type: decision.Int}, {Name: "amount", Type: decision.Double}, {Name: "decision.note", Type: decision.String}}}})
	log := slog.New(NewSlogHandler(r, nil, DefaultSlogMapping("decision.")))
	id, request := decision.NewID(time.Now()), decision.NewID(time.Now())
	log.Info("hello", "action", "not one: it is at the top")
	log.With("amount", 2.5).With(slog.Group("http", "status", uint64(200))).WithGroup("decision").With("scenario", "fraud").Info("decided",
		"id", id, "request_id", request.String(), "source_id", 17, "entity", "ada", "candidates", []string{"allow", "deny"},
		"action", lazy(func() slog.Value { return slog.StringValue("deny") }), "confidence", "0.75", "confidence_def", "peak",
		"reason", "match", "rule_id", "R17", "backend", "rules", "strategy_version", "v3", "applied", "rejected",
		"latency", 3*time.Millisecond, "propensity", 1, "note", slog.AnyValue(time.March), "unheard", "of")
	log.Info("failed", slog.Group("decision", "scenario", "fraud", "status", "error", "error_code", "http-503",
		"error", errors.New("token=hunter2hunter2 is refused"), "candidates", "allow, deny", "latency", int64(12)))
	led := closeNow(t, r)
	rows := sink.all()
	if len(rows) != 2 || led.Written != 2 || led.Offered != 2 {
		t.Fatalf("%d rows, %+v, %s", len(rows), led, r.Stats().LastError)
	}
	a := rows[0]
	if a.ID != id || a.RequestID != request || a.SourceID != "17" || !a.Entity.Set || a.Action != "deny" || a.Status != decision.OK ||
		len(a.Candidates) != 2 || a.Candidates[1].Action != "deny" || a.Confidence.V != 0.75 || a.ConfidenceDef != "peak" ||
		a.Reason != decision.ReasonMatch || a.RuleID != "R17" || a.Backend != "rules" || a.Artefact.StrategyVersion != "v3" ||
		a.Applied != snapshot.AppliedRejected || a.Latency.V != 3*time.Millisecond || a.Propensity.V != 1 || a.Scenario != "fraud" {
		t.Errorf("got %+v", a)
	}
	if a.Attrs.Get("amount").Double() != 2.5 || a.Attrs.Get("http.status").Int() != 200 || a.Attrs.Get("decision.note").Str() != "March" {
		t.Errorf("attributes %+v", a.Attrs.Values)
	}
	b := rows[1]
	if b.Status != decision.Error || b.ErrorCode != "http-503" || strings.Contains(b.Error, "hunter2") || b.Latency.V != 12 ||
		len(b.Candidates) != 2 || b.Candidates[1].Action != "deny" || !b.Attrs.Get("amount").IsNull() {
		t.Errorf("got %+v", b)
	}
	if r.Stats().Unlisted != 0 {
		t.Error("attributes of a log count as unlisted")
	}
}

func TestSlogWhatIsNoDecision(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{Scenario: "s"})
	marked := slog.New(NewSlogHandler(r, nil, SlogMapping{Marker: "decision", Message: "decided", Action: "action"}))
	marked.Info("decided", "action", "allow")
	marked.Info("other", "action", "allow", "decision", true)
	marked.Info("decided", "decision", true)
	marked.Info("decided", "decision", true, "action", "allow") // the only one
	quiet := slog.NewTextHandler(&bytes.Buffer{}, &slog.HandlerOptions{Level: slog.LevelError})
	slog.New(NewSlogHandler(r, quiet, SlogMapping{Action: "action"})).Info("", "action", "not enabled")
	slog.New(NewSlogHandler(r, quiet, SlogMapping{Action: "action", Level: slog.LevelInfo})).Info("", "action", "for the row only")
	r.SetRecording(false)
	marked.Info("decided", "decision", true, "action", "off")
	r.SetRecording(true)
	led := closeNow(t, r)
	if rows := sink.all(); len(rows) != 2 || rows[0].Action != "allow" || rows[1].Action != "for the row only" {
		t.Errorf("%d rows", len(rows))
	}
	if led.Offered != 3 || led.Dropped[DropSwitchedOff] != 1 {
		t.Errorf("ledger %+v", led)
	}
}

func TestSlogErrorsAreContained(t *testing.T) {
	r := newRecorder(t, &memory{}, Options{Scenario: "s"})
	var buf bytes.Buffer
	log := slog.New(NewSlogHandler(r, slog.NewTextHandler(&buf, nil), DefaultSlogMapping("")))
	bad := []any{"status", "splendid", "reason", "because", "id", "12", "request_id", "x", "confidence", "high",
		"propensity", "p", "latency", "soon", "candidates", 12}
	for i := 0; i < len(bad); i += 2 {
		log.Info("", "action", "allow", bad[i], bad[i+1])
	}
	log.Info("", "action", "allow", "applied", strings.Repeat("x", 3), "confidence", 1e9) // refused by the row's own check
	led := closeNow(t, r)
	if n := uint64(len(bad) / 2); led.Offered != n+1 || led.Dropped[DropInvalid] < n || led.Written+led.DroppedTotal() != n+1 {
		t.Errorf("ledger %+v", led)
	}
	if n := strings.Count(buf.String(), "\n"); n != len(bad)/2+1 {
		t.Errorf("%d of the records were logged", n)
	}
	if r.Stats().Panics > 0 {
		t.Error(r.Stats().LastError)
	}
}

// Inside a request the log answers what the handler left open, adds what it does not
// know, and opens a request of its own for what was answered already.
func TestSlogInsideRecording(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, Options{Scenario: "s", EntityKey: key})
	log := slog.New(NewSlogHandler(r, nil, DefaultSlogMapping("")))
	h := r.Middleware(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		rec := FromContext(q.Context())
		rec.SetEntity("ada")
		rec.Decision("open").SetActions("allow", "deny")
		rec.Decision("answered").Choose("allow")
		for _, question := range []string{"open", "new", "answered"} {
			log.InfoContext(q.Context(), "", "question", question, "action", "deny")
		}
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	closeNow(t, r)
	rows := sink.all()
	byRequest := map[decision.ID][]string{}
	for _, s := range rows {
		byRequest[s.RequestID] = append(byRequest[s.RequestID], s.Question+"="+s.Action)
		if !s.Entity.Set || s.Entity != rows[0].Entity {
			t.Error("a row without the request's entity")
		}
	}
	var got []string
	for _, q := range byRequest {
		slices.Sort(q)
		got = append(got, strings.Join(q, " "))
	}
	slices.Sort(got)
	if want := []string{"answered=allow new=deny open=deny", "answered=deny"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func BenchmarkSlogHandler(b *testing.B) {
	r := benchRecorder(b, Options{Scenario: "test"})
	for name, h := range map[string]slog.Handler{"bare": noLog{}, "recorded": NewSlogHandler(r, nil, DefaultSlogMapping(""))} {
		b.Run(name, func(b *testing.B) {
			log := slog.New(h)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				log.LogAttrs(context.Background(), slog.LevelInfo, "decided", slog.String("scenario", "test"), slog.String("action", "allow"),
					slog.Float64("confidence", 0.5), slog.Int("n", 7))
			}
		})
	}
}
