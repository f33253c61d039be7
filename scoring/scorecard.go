package scoring

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/clefbench/clefbench/snapshot"
)

// Version is the version of every formula in this package; a report carries it.
const Version = "1"

// Number is a float64 whose NaN is JSON null: what could not be measured.
type Number float64

// MarshalJSON writes the shortest text that reads back to the same float64, or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if f := float64(n); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return strconv.AppendFloat(nil, f, 'g', -1, 64), nil
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads a number, or null as NaN.
func (n *Number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}

// Estimate is a number with its 95 % interval. Value is NaN exactly when NA says why;
// Lo and Hi are NaN when NA is set, or when NoInterval says why there is none.
type Estimate struct {
	Value      Number `json:"value"`
	Lo         Number `json:"lo"`
	Hi         Number `json:"hi"`
	NA         string `json:"na,omitempty"`
	NoInterval string `json:"no_interval,omitempty"`
}

// Term is a named part of a category: U, U_base, attainment, q2 reproducible, ...
type Term struct {
	Name   string `json:"name"`
	Weight Number `json:"weight"`
	Estimate
}

// Category is one of the four scored categories, 0 to 100.
type Category struct {
	Estimate
	// Evidence says what the number rests on: the rung (L1 labels), counts, price book.
	Evidence string `json:"evidence"`
	// Terms are the parts it was computed from, for people and for score verify.
	Terms []Term `json:"terms,omitempty"`
}

// Categories holds the four.
type Categories struct {
	Accuracy     Category `json:"accuracy"`
	Latency      Category `json:"latency"`
	Cost         Category `json:"cost"`
	Auditability Category `json:"auditability"`
}

// Counts accounts for every offered decision: offered is the sum of the others. All
// are rows, not weighted.
type Counts struct {
	Offered int64 `json:"offered"`
	// Answered is ok + denied + abstained.
	Answered      int64 `json:"answered"`
	Abstained     int64 `json:"abstained"`
	Denied        int64 `json:"denied"`
	Timeouts      int64 `json:"timeouts"`
	Errors        int64 `json:"errors"`
	NotReplayable int64 `json:"not_replayable"`
	// Reasons counts errors and not-replayable by error code.
	Reasons map[string]int64 `json:"reasons,omitempty"`
	// Labelled counts offered decisions with a label.
	Labelled int64 `json:"labelled"`
	// Clusters is the number of distinct entities (else requests).
	Clusters int64 `json:"clusters"`
}

// Quantiles are latencies in nanoseconds, over answered decisions within the run;
// misses count as +infinity, so a quantile may be NaN (null): beyond every answer.
type Quantiles struct {
	P50 Number `json:"p50"`
	P95 Number `json:"p95"`
	P99 Number `json:"p99"`
	// Cold is the latency of the backend's first call.
	Cold Number `json:"cold"`
}

// Bucket is one bucket of the latency distribution, for charts: [LoNs, HiNs).
type Bucket struct {
	LoNs   int64  `json:"lo_ns"`
	HiNs   int64  `json:"hi_ns"`
	Weight Number `json:"weight"`
}

// Confusion counts chosen actions by right action, weighted; Chosen may also be
// "(abstain)", "(timeout)", "(error)", "(denied)" or "(not-replayable)".
type Confusion struct {
	Truth  string `json:"truth"`
	Chosen string `json:"chosen"`
	Weight Number `json:"weight"`
}

// Result is a backend's score over a run or over one scenario.
type Result struct {
	Eligible bool `json:"eligible"`
	// Ineligible lists the floors that are not held.
	Ineligible []string   `json:"ineligible,omitempty"`
	Total      Estimate   `json:"total"`
	Categories Categories `json:"categories"`
	// Geometric is the weighted geometric mean of the categories, printed beside the total.
	Geometric Number    `json:"geometric"`
	Counts    Counts    `json:"counts"`
	LatencyNs Quantiles `json:"latency_ns"`
	// ActionAccuracy is the weighted share of labelled decisions with the right action.
	ActionAccuracy Estimate `json:"action_accuracy"`
	// CostPer1000 is the price of 1,000 answered decisions in the price book's currency.
	CostPer1000 Estimate `json:"cost_per_1000"`
	// Agreement is the weighted share of equal actions with the record; never accuracy.
	Agreement    Estimate    `json:"agreement"`
	Distribution []Bucket    `json:"distribution,omitempty"`
	Confusion    []Confusion `json:"confusion,omitempty"`
}

// ScenarioScore is a backend's score in one scenario.
type ScenarioScore struct {
	Result
	// Majority is the accuracy of the best constant action, MajorityAction; Ceiling the
	// best accuracy that anyone can reach (NaN when unknown). Both as action accuracy.
	MajorityAction string `json:"majority_action,omitempty"`
	Majority       Number `json:"majority"`
	Ceiling        Number `json:"ceiling"`
	// BaseUtility and TopUtility are U_base and U_top of the accuracy formula.
	BaseUtility Number `json:"base_utility"`
	TopUtility  Number `json:"top_utility"`
}

// BackendScore is one row of the scorecard.
type BackendScore struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	Result
	// Worst is the scenario with the lowest total (of those that have one).
	Worst     string                   `json:"worst_scenario,omitempty"`
	Scenarios map[string]ScenarioScore `json:"scenarios"`
}

// Pair compares two backends on what both can replay: Diff = New - Base.
type Pair struct {
	Base string `json:"base"`
	New  string `json:"new"`
	// Scenario is empty for the whole run.
	Scenario string `json:"scenario,omitempty"`
	// Measure is what Diff is of: total, or utility (0 to 1).
	Measure string `json:"measure"`
	// N is the number of pairs; Left how many decisions one of the two could not replay.
	N    int64  `json:"n"`
	Left int64  `json:"left"`
	Diff Number `json:"diff"`
	Lo   Number `json:"lo"`
	Hi   Number `json:"hi"`
	// P is the two-sided p-value; MDE the difference that had 80 % power.
	P   Number `json:"p"`
	MDE Number `json:"mde"`
	// OnlyBase and OnlyNew count decisions that only one of them got right (McNemar).
	OnlyBase int64 `json:"only_base_right"`
	OnlyNew  int64 `json:"only_new_right"`
	// Verdict is better, worse, no difference shown, or not comparable.
	Verdict string `json:"verdict"`
}

// Warning is a finding that travels with the results and is printed as a footnote.
type Warning struct {
	Code     string `json:"code"`
	Backend  string `json:"backend,omitempty"`
	Scenario string `json:"scenario,omitempty"`
	Text     string `json:"text"`
}

// DatasetInfo says what was scored.
type DatasetInfo struct {
	Snapshots int64           `json:"snapshots"`
	Requests  int64           `json:"requests"`
	Digest    string          `json:"digest"`
	Ledger    snapshot.Ledger `json:"ledger"`
	// Intact says that every digest was verified and every ledger closed.
	Intact bool `json:"intact"`
}

// RunInfo names the replay; Partial marks one that was interrupted.
type RunInfo struct {
	Path    string `json:"path"`
	Digest  string `json:"digest"`
	Seed    uint64 `json:"seed"`
	Partial bool   `json:"partial,omitempty"`
}

// ScenarioNames lists the scenarios of all backends, sorted.
func (s *Scorecard) ScenarioNames() []string {
	set := map[string]bool{}
	for i := range s.Backends {
		for name := range s.Backends[i].Scenarios {
			set[name] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// Scorecard is the scored run, and the report's JSON contract.
type Scorecard struct {
	ScoreVersion string `json:"score_version"`
	// Profile is the full profile that was used, so that the score can be recomputed.
	Profile  *Profile       `json:"profile"`
	Dataset  DatasetInfo    `json:"dataset"`
	Backends []BackendScore `json:"backends"`
	Pairs    []Pair         `json:"pairs"`
	// Ties are the tied sets, best first; a set of one is a place of its own. Backends
	// without a total are in none.
	Ties     [][]string `json:"ties"`
	Warnings []Warning  `json:"warnings"`
	Run      RunInfo    `json:"run"`
}
