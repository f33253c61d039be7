package recorder

import (
	"slices"
	"strings"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/secret"
	"github.com/clefbench/clefbench/snapshot"
)

// labelCleaner takes secrets out of the labels of one row: behind a proxy and on stdin it
// is somebody else who fills them.
type labelCleaner struct {
	scan *secret.Scanner
	row  *snapshot.Snapshot
	// own is the row's memory for its notes: those of a request's rows are shared.
	own []string
}

// cleanLabels cleans the labels, and last the notes. The candidates come first, so that the
// action has the mark of its candidate.
func cleanLabels(row *snapshot.Snapshot, own []string, s *secret.Scanner) []string {
	c := labelCleaner{s, row, own}
	for i := range row.Candidates {
		c.label("candidates", &row.Candidates[i].Action)
	}
	a := &row.Artefact
	c.label("action", &row.Action)
	c.label("question", &row.Question)
	c.label("question_type", (*string)(&row.QuestionType))
	c.label("scenario", &row.Scenario)
	c.label("feature_set", &row.FeatureSet)
	c.label("applied", (*string)(&row.Applied))
	c.label("confidence_def", &row.ConfidenceDef)
	c.label("rule_id", &row.RuleID)
	c.label("provider", &a.Provider)
	c.label("backend", &row.Backend)
	c.label("dialect", &a.Dialect)
	c.label("engine_version", &a.EngineVersion)
	c.label("model_requested", &a.ModelRequested)
	c.label("model_resolved", &a.ModelResolved)
	c.label("strategy_version", &a.StrategyVersion)
	c.label("error_code", &row.ErrorCode)
	c.label("propensity_kind", (*string)(&row.PropensityKind))
	c.label("terms", &row.Terms.TrainingUse)
	c.label("terms", &row.Terms.Publishable)
	if len(row.SourceID) >= secret.MinLabel {
		c.clean("source_id", &row.SourceID, false) // of its own in every row
	}
	c.notes()
	return c.own
}

// label is short enough to be inlined: most rows leave most labels empty.
func (c *labelCleaner) label(column string, text *string) {
	if len(*text) >= secret.MinLabel {
		c.clean(column, text, true)
	}
}

func (c *labelCleaner) clean(column string, text *string, comesAgain bool) {
	clean, found := c.scan.Label(*text, comesAgain)
	if len(found) == 0 {
		return
	}
	*text = clean
	for _, note := range noteFindings(nil, column, found, 0) {
		if !slices.Contains(c.row.Redacted, note) {
			c.add(note)
		}
	}
}

func (c *labelCleaner) add(note string) {
	c.own = append(append(c.own[:0], c.row.Redacted...), note)
	c.row.Redacted = c.own
}

// notes cleans what the row's notes say: those of stdin are the caller's, and others name
// places in bodies.
func (c *labelCleaner) notes() {
	for i, note := range c.row.Redacted {
		clean, found := c.scan.Label(note, true)
		if len(found) == 0 {
			continue
		}
		c.own = append(c.own[:0], c.row.Redacted...)
		c.own[i] = clean
		c.row.Redacted = c.own
	}
}

// echoesIn looks in attributes for what the bodies named: the attributes come first, and a
// client may send a password under two names. Without a plan it looks at all.
func echoesIn(a decision.Attrs, p *plan, notes []string, s *secret.Scanner) []string {
	if !s.Remembers() {
		return notes
	}
	for i := range a.Values {
		if a.Values[i].Type() == decision.String && (p == nil || p.looksAt(i)) {
			notes = cleanValue(&a.Values[i], a.Schema.Fields()[i].Name, notes, s)
		}
	}
	return notes
}

// hiddenName is what stands for the name of an attribute that holds a secret.
func hiddenName(name string, s *secret.Scanner) (clean string, hidden bool) {
	clean, found := s.Text(name)
	return strings.ToValidUTF8(clean, "?"), len(found) > 0
}
