package datasets

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// Stratum is the sort of a request in a retention.
type Stratum string

// The strata: only ordinary requests are thinned out.
const (
	StratumYoung    Stratum = "young"
	StratumAnomaly  Stratum = "anomaly"
	StratumOrdinary Stratum = "ordinary"
)

// requests yields the rows of one request after the other, as copies. Rows of a request
// stand together; where they do not, each run of them is yielded by itself.
func (d *Dataset) requests() iter.Seq2[[]pair, error] {
	return func(yield func([]pair, error) bool) {
		var request []pair
		for i := range d.segments {
			for p, err := range d.segments[i].pairs() {
				if err != nil {
					yield(nil, err)
					return
				}
				if len(request) > 0 && request[0].row.RequestID != p.row.RequestID {
					if !yield(request, nil) {
						return
					}
					request = request[:0]
				}
				request = append(request, p.clone())
			}
		}
		if len(request) > 0 {
			yield(request, nil)
		}
	}
}

func (p pair) clone() pair {
	p.row = p.row.Clone()
	if p.label != nil {
		p.label = p.label.Clone()
	}
	return p
}

// sorter puts requests into strata. What it says of a row depends on the row, and for rare
// actions on the weights of the whole data set: not on the order of rows or rules.
type sorter struct {
	policy *RetentionPolicy
	cutoff time.Time
	seed   uint64
	// salt is the digest of the data set. Without it a second retention under the same seed
	// would draw the same number for a request as the first one did: all that stayed below k
	// would stay below it again, while keep_prob says k*k.
	salt string
	// weights is by scenario, then action; scenario weights are under "", which is no action.
	weights map[string]map[string]float64
	// split holds the requests whose rows do not stand together, by what all of them say.
	split map[decision.ID]*verdict
}

// verdict is what the rows of a request say: young, or by which criteria an anomaly.
type verdict struct {
	young    bool
	criteria map[string]bool
}

func newSorter(o *RetainOptions, digest string) sorter {
	return sorter{policy: &o.Policy, cutoff: o.Now.Add(-o.Policy.After), seed: o.Seed, salt: digest, weights: map[string]map[string]float64{}}
}

// weigh sums the weights of actions.
func (s *sorter) weigh(rows iter.Seq2[*snapshot.Snapshot, error]) error {
	for row, err := range rows {
		if err != nil {
			return err
		}
		w, ok := s.weights[row.Scenario]
		if !ok {
			w = map[string]float64{}
			s.weights[strings.Clone(row.Scenario)] = w
		}
		w[""] += row.Weight()
		if row.Action != "" {
			if _, ok := w[row.Action]; ok {
				w[row.Action] += row.Weight()
			} else {
				w[strings.Clone(row.Action)] = row.Weight()
			}
		}
	}
	return nil
}

// stratum sorts a request, and lists what made it an anomaly, each criterion once. A
// request is as young as its youngest row.
func (s *sorter) stratum(request []pair) (Stratum, map[string]bool) {
	v := s.split[request[0].row.RequestID]
	if v == nil {
		v = &verdict{criteria: map[string]bool{}}
		for _, p := range request {
			s.judge(p.row, v)
		}
	}
	switch {
	case v.young:
		return StratumYoung, nil
	case len(v.criteria) > 0:
		return StratumAnomaly, v.criteria
	}
	return StratumOrdinary, nil
}

// judge adds what a row says of its request.
func (s *sorter) judge(row *snapshot.Snapshot, v *verdict) {
	if row.Time.After(s.cutoff) {
		v.young = true
		return
	}
	s.anomaly(row, v.criteria)
}

// gather finds the requests whose rows do not stand together, as in imports of several
// streams, and what all of their rows say: a request stays or goes as a whole, under one
// keep_prob. The draw depends on the id, and is the same for all runs anyway.
func (s *sorter) gather(d *Dataset) error {
	again, err := d.splitRequests()
	if err != nil || len(again) == 0 {
		return err
	}
	s.split = map[decision.ID]*verdict{}
	for row, err := range d.Snapshots(Filter{}) {
		if err != nil {
			return err
		}
		if !again[hashID(row.RequestID)] {
			continue
		}
		v := s.split[row.RequestID]
		if v == nil {
			v = &verdict{criteria: map[string]bool{}}
			s.split[row.RequestID] = v
		}
		s.judge(row, v)
	}
	return nil
}

// splitRequests returns the hashes of requests whose rows stand in several places. A hash
// of 8 bytes for each run of rows is all that is held; where two requests share one, both
// are looked at closely for nothing.
func (d *Dataset) splitRequests() (map[uint64]bool, error) {
	var runs []uint64
	var last decision.ID
	for i := range d.segments {
		err := visit(d.segments[i].path, arrowfile.KindSnapshot, func(f *arrowfile.File) error {
			for row, err := range f.Snapshots("request_id") {
				if err != nil {
					return err
				}
				if row.RequestID != last {
					last = row.RequestID
					runs = append(runs, hashID(last))
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(runs)
	again := map[uint64]bool{}
	for i := 1; i < len(runs); i++ {
		if runs[i] == runs[i-1] {
			again[runs[i]] = true
		}
	}
	return again, nil
}

// hashID folds an id: UUIDv7 has the time in its first half and random bits in both.
func hashID(id decision.ID) uint64 {
	return binary.LittleEndian.Uint64(id[:8]) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(id[8:]), 31)
}

// anomaly adds the criteria that a row meets: all of them, not the first.
func (s *sorter) anomaly(row *snapshot.Snapshot, criteria map[string]bool) {
	if row.Status != decision.OK {
		criteria["status"] = true
	}
	if row.Confidence.Set && row.Confidence.V < s.policy.LowConfidence {
		criteria["low-confidence"] = true
	}
	if w := s.weights[row.Scenario]; row.Action != "" && w[row.Action] < s.policy.Rare*w[""] {
		criteria["rare"] = true
	}
	if row.RuleID != "" && slices.Contains(s.policy.Rules, row.RuleID) {
		criteria["rule:"+row.RuleID] = true
	}
}

// draw decides for a request: a hash of salt, seed and id is uniform in [0,1).
func (s *sorter) draw(id decision.ID, prob float64) bool {
	b := append([]byte("clefbench retain 1\x00"), s.salt...)
	b = binary.LittleEndian.AppendUint64(b, s.seed)
	h := sha256.Sum256(append(b, id[:]...))
	return float64(binary.LittleEndian.Uint64(h[:8])>>11)/(1<<53) < prob
}

// StratumCount counts one stratum of one scenario. Weights are sums of 1/keep_prob: of
// what was read by the old one, of what was kept by the new one. They differ by chance only.
type StratumCount struct {
	Scenario     string  `json:"scenario"`
	Stratum      Stratum `json:"stratum"`
	RequestsRead int64   `json:"requests_read"`
	RequestsKept int64   `json:"requests_kept"`
	RowsRead     int64   `json:"rows_read"`
	RowsKept     int64   `json:"rows_kept"`
	WeightRead   float64 `json:"weight_read"`
	WeightKept   float64 `json:"weight_kept"`
}

// tally counts a retention. A request of several scenarios counts to that of its first row.
type tally struct {
	policy   *RetentionPolicy
	strata   map[string]*StratumCount
	criteria map[string]int64
}

func newTally(o *RetainOptions) *tally {
	return &tally{policy: &o.Policy, strata: map[string]*StratumCount{}, criteria: map[string]int64{}}
}

func (t *tally) at(kind Stratum, request []pair) *StratumCount {
	scenario := request[0].row.Scenario
	key := scenario + "\x00" + string(kind)
	if t.strata[key] == nil {
		t.strata[key] = &StratumCount{Scenario: strings.Clone(scenario), Stratum: kind}
	}
	return t.strata[key]
}

// read counts a request as it was.
func (t *tally) read(kind Stratum, criteria map[string]bool, request []pair) {
	c := t.at(kind, request)
	c.RequestsRead++
	c.RowsRead += int64(len(request))
	for _, p := range request {
		c.WeightRead += p.row.Weight()
	}
	for name := range criteria {
		t.criteria[name]++
	}
}

// kept counts a request with its new weights.
func (t *tally) kept(kind Stratum, request []pair) {
	c := t.at(kind, request)
	c.RequestsKept++
	c.RowsKept += int64(len(request))
	for _, p := range request {
		c.WeightKept += p.row.Weight()
	}
}

// list is sorted by scenario and stratum.
func (t *tally) list() []StratumCount {
	out := []StratumCount{}
	for _, key := range slices.Sorted(maps.Keys(t.strata)) {
		out = append(out, *t.strata[key])
	}
	slices.SortStableFunc(out, func(a, b StratumCount) int { return cmp.Compare(a.Scenario, b.Scenario) })
	return out
}

// warnings names what the numbers alone do not tell: strata of which chance left nothing,
// and rules that may be misspelt.
func (t *tally) warnings() []scoring.Warning {
	var out []scoring.Warning
	for _, s := range t.list() {
		if s.RequestsRead > 0 && s.RequestsKept == 0 {
			out = append(out, scoring.Warning{Code: "stratum-empty", Text: fmt.Sprintf(
				"scenario %s: chance left none of %d %s requests, so that nothing can be said of them any more: keep more",
				s.Scenario, s.RequestsRead, s.Stratum)})
		}
	}
	for _, rule := range t.policy.Rules {
		if t.criteria["rule:"+rule] == 0 {
			out = append(out, scoring.Warning{Code: "rule-unseen", Text: fmt.Sprintf("rule %q decided nothing that is old enough", rule)})
		}
	}
	return out
}
