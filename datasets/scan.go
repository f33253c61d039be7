package datasets

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"unsafe"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/secret"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// ScanReport says what looks like a secret in a data set. It holds places, never values.
type ScanReport struct {
	Snapshots int64 `json:"snapshots"`
	Labels    int64 `json:"labels"`
	// Places counts the findings; Findings has them by column and kind, in this order.
	Places   int64         `json:"places"`
	Findings []ScanFinding `json:"findings"`
}

// ScanFinding counts the places of one kind in one column.
type ScanFinding struct {
	Column string `json:"column"`
	Kind   string `json:"kind"`
	Places int64  `json:"places"`
	// Examples are the first places.
	Examples []ScanExample `json:"examples"`
}

// ScanExample is a place: a decision, and where in the value it is (RFC 6901), empty for
// a text.
type ScanExample struct {
	ID      decision.ID `json:"id"`
	Pointer string      `json:"pointer"`
}

// maxScanExamples is how many places of a column and kind are named.
const maxScanExamples = 3

// scanColumns are those that can hold what somebody wrote, and the ids; only they are
// decoded.
var scanColumns = []string{"id", "request_id", "source_id", "question", "question_type", "scenario", "attrs", "input", "output", "candidates", "feature_set", "action", "params",
	"applied", "confidence_def", "rule_id", "provider", "backend", "dialect", "engine_version", "model_requested", "model_resolved",
	"strategy_version", "propensity_kind", "error", "error_code", "nd", "redacted", "terms"}

// Scan looks for secrets in every text of every row and label, with the rules of the
// recorder. Kinds in ignore are left out.
func (d *Dataset) Scan(ignore ...string) (*ScanReport, error) {
	sc := scan{report: &ScanReport{}, ignore: ignore}
	sc.scanner.Max = math.MaxInt
	for i := range d.segments {
		s := &d.segments[i]
		if err := sc.segment(s); err != nil {
			return nil, err
		}
		if s.labels == "" {
			continue
		}
		for l, err := range rowsOf(s.labels, (*arrowfile.File).Labels) {
			if err != nil {
				return nil, err
			}
			if l != nil {
				sc.labels(l)
			}
		}
	}
	slices.SortFunc(sc.report.Findings, func(a, b ScanFinding) int {
		return cmp.Or(cmp.Compare(a.Column, b.Column), cmp.Compare(a.Kind, b.Kind))
	})
	return sc.report, nil
}

// scan is one pass over a data set.
type scan struct {
	report  *ScanReport
	ignore  []string
	scanner secret.Scanner
	// names are the columns of the attributes of the segment at hand, denied those that are
	// credentials by their names, and hidden what their names hold.
	names  []string
	denied []bool
	hidden []secret.Finding
	// request is whose values the scanner remembers: an echo is looked for in its own
	// request only, so that the result does not depend on the order of the rows.
	request decision.ID
}

func (sc *scan) segment(s *segment) error {
	sc.columns(s.schema)
	return visit(s.path, arrowfile.KindSnapshot, func(f *arrowfile.File) error {
		n := int64(0)
		for row, err := range f.Snapshots(scanColumns...) {
			if err != nil {
				return err
			}
			if n++; n > s.meta.Rows {
				return nil
			}
			sc.row(row)
		}
		return nil
	})
}

// columns names the attributes of a segment; a name that holds a secret is not printed.
func (sc *scan) columns(schema *decision.Schema) {
	sc.names, sc.denied, sc.hidden = nil, nil, nil
	sc.scanner.Forget()
	sc.request = decision.ID{}
	for _, f := range schema.Fields() {
		name, found := sc.scanner.Text(f.Name)
		for _, x := range found {
			sc.hidden = append(sc.hidden, secret.Finding{Kind: x.Kind}) // a pointer could name the rest
		}
		sc.scanner.Forget()
		sc.names = append(sc.names, "attrs."+name)
		sc.denied = append(sc.denied, secret.Attribute(f.Name))
	}
}

func (sc *scan) row(s *snapshot.Snapshot) {
	for _, f := range sc.hidden { // once a segment, where its first row is
		sc.note("attrs", s.ID, f)
	}
	sc.hidden = nil
	sc.report.Snapshots++
	if s.RequestID != sc.request {
		sc.scanner.Forget()
		sc.request = s.RequestID
	}
	for i, v := range s.Attrs.Values {
		switch {
		case v.IsNull():
		case sc.denied[i]:
			sc.note(sc.names[i], s.ID, secret.Finding{Kind: secret.Credential})
		case v.Type() == decision.String:
			sc.text(sc.names[i], s.ID, v.Str())
		}
	}
	sc.body("input", s.ID, s.Input)
	sc.body("output", s.ID, s.Output)
	for _, c := range [...]struct{ column, text string }{{"params", s.Params}, {"error", s.Error}, {"nd", s.ND}} {
		sc.text(c.column, s.ID, c.text)
	}
	a := &s.Artefact
	for _, c := range [...]struct{ column, text string }{
		{"question", s.Question}, {"question_type", string(s.QuestionType)}, {"scenario", s.Scenario}, {"feature_set", s.FeatureSet}, {"action", s.Action}, {"applied", string(s.Applied)},
		{"confidence_def", s.ConfidenceDef}, {"rule_id", s.RuleID}, {"provider", a.Provider}, {"backend", s.Backend}, {"dialect", a.Dialect},
		{"engine_version", a.EngineVersion}, {"model_requested", a.ModelRequested}, {"model_resolved", a.ModelResolved},
		{"strategy_version", a.StrategyVersion}, {"error_code", s.ErrorCode}, {"terms", s.Terms.TrainingUse}, {"terms", s.Terms.Publishable},
	} {
		sc.label(c.column, s.ID, c.text, true)
	}
	sc.label("source_id", s.ID, s.SourceID, false)
	for i := range s.Candidates {
		sc.label("candidates", s.ID, s.Candidates[i].Action, true)
	}
	for _, r := range s.Redacted {
		sc.label("redacted", s.ID, r, true)
	}
}

func (sc *scan) labels(l *snapshot.Label) {
	sc.report.Labels++
	sc.scanner.Forget()
	sc.request = decision.ID{}
	sc.label("label.action", l.ID, l.Action, true)
	sc.label("label.source", l.ID, l.Source, true)
	sc.text("label.key", l.ID, l.Key)
	for i := range l.Utilities {
		sc.label("label.utilities", l.ID, l.Utilities[i].Action, true)
	}
}

func (sc *scan) text(column string, id decision.ID, text string) {
	if text == "" {
		return
	}
	_, found := sc.scanner.Text(text)
	for _, f := range found {
		sc.note(column, id, f)
	}
}

// label is text for labels.
func (sc *scan) label(column string, id decision.ID, text string, comesAgain bool) {
	_, found := sc.scanner.Label(text, comesAgain)
	for _, f := range found {
		sc.note(column, id, f)
	}
}

// body looks through a stored body; one that the recorder would not store as it is, is
// looked through as text.
func (sc *scan) body(column string, id decision.ID, body []byte) {
	if len(body) == 0 {
		return
	}
	_, found, _, err := sc.scanner.Body(body, secret.Whole)
	if errors.Is(err, secret.ErrUnparsable) || errors.Is(err, secret.ErrBinary) {
		sc.text(column, id, unsafe.String(&body[0], len(body)))
		return
	}
	for _, f := range found {
		sc.note(column, id, f)
	}
}

func (sc *scan) note(column string, id decision.ID, f secret.Finding) {
	if slices.Contains(sc.ignore, string(f.Kind)) {
		return
	}
	sc.report.Places++
	list := sc.report.Findings
	i := slices.IndexFunc(list, func(x ScanFinding) bool { return x.Column == column && x.Kind == string(f.Kind) })
	if i < 0 {
		i = len(list)
		sc.report.Findings = append(list, ScanFinding{Column: column, Kind: string(f.Kind), Examples: []ScanExample{}})
	}
	found := &sc.report.Findings[i]
	if found.Places++; len(found.Examples) < maxScanExamples {
		found.Examples = append(found.Examples, ScanExample{id, f.Pointer})
	}
}

// ScanKinds lists the kinds of secrets that [Dataset.Scan] knows.
func ScanKinds() []string {
	var out []string
	for _, k := range secret.Kinds() {
		out = append(out, string(k))
	}
	return out
}
