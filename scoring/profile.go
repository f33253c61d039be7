package scoring

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/clefbench/clefbench/internal/document"
)

// Weights are the shares of the four categories in the total; they sum to 1.
type Weights struct {
	Accuracy     float64 `json:"accuracy"`
	Latency      float64 `json:"latency"`
	Cost         float64 `json:"cost"`
	Auditability float64 `json:"auditability"`
}

// LatencyAnchors are the two ends of the latency scale and the deadline.
type LatencyAnchors struct {
	Good     time.Duration `json:"good_ns"`
	Bad      time.Duration `json:"bad_ns"`
	Deadline time.Duration `json:"deadline_ns"`
}

// CostAnchors are the two ends of the cost scale, per 1,000 answered decisions in the
// price book's currency.
type CostAnchors struct {
	Good float64 `json:"good"`
	Bad  float64 `json:"bad"`
}

// Floors are what a backend must hold to be eligible.
type Floors struct {
	// Accuracy: the lower bound of A_dec must be above this.
	Accuracy float64 `json:"accuracy"`
	// Attainment: the share answered within the deadline must be at least this.
	Attainment float64 `json:"attainment"`
	// Auditability must be at least this.
	Auditability float64 `json:"auditability"`
}

// Task is what a scenario is about: facts of the data set, frozen when labels are
// attached (dataset.yaml).
type Task struct {
	Candidates []string `json:"candidates,omitempty"`
	// Utility[truth][action] in [0,1]; nil means 1 for the right action, else 0. A label
	// that carries utilities of its own overrides it.
	Utility map[string]map[string]float64 `json:"utility,omitempty"`
	// Unanswered is the utility of no answer: the worst there is. Nil: 0.
	Unanswered *float64 `json:"unanswered,omitempty"`
	// Baseline is U_base, the utility of the best constant action BaselineAction, and Top
	// is U_top; NaN: computed from the labels of the run.
	Baseline       Number `json:"baseline"`
	BaselineAction string `json:"baseline_action,omitempty"`
	Top            Number `json:"top"`
	// Majority is the action accuracy of the best constant action, Ceiling the best
	// action accuracy that anyone can reach; NaN: unknown.
	Majority Number `json:"majority"`
	Ceiling  Number `json:"ceiling"`
	// LabelStrength is one phrase for people: strong, weak, saturated, ...
	LabelStrength string `json:"label_strength,omitempty"`
}

// Price is one entry of a price book.
type Price struct {
	// Backend is a backend's name or kind, or "*" for any; Model, when set, must equal the
	// resolved model.
	Backend string `json:"backend"`
	Model   string `json:"model,omitempty"`
	// Unit is decision, 1M-tokens-in, 1M-tokens-out, cpu-second, or GiB-egress.
	Unit  string  `json:"unit"`
	Price float64 `json:"price"`
	// Effective, URL and Retrieved are the receipt.
	Effective string `json:"effective"`
	URL       string `json:"url,omitempty"`
	Retrieved string `json:"retrieved,omitempty"`
	Note      string `json:"note,omitempty"`
}

// PriceBook is a dated list of prices.
type PriceBook struct {
	Currency string  `json:"currency"`
	Prices   []Price `json:"prices"`
	// Digest is the SHA-256 of the file, in hex.
	Digest string `json:"digest"`
}

// Profile is everything that turns measurements into a score, besides the formulas.
type Profile struct {
	Name    string         `json:"name"`
	Weights Weights        `json:"weights"`
	Latency LatencyAnchors `json:"latency"`
	Cost    CostAnchors    `json:"cost"`
	Floors  Floors         `json:"floors"`
	// ScenarioWeights replace the shares of decisions where set.
	ScenarioWeights map[string]float64 `json:"scenario_weights,omitempty"`
	Tasks           map[string]Task    `json:"tasks"`
	// Prices is nil when no price book was given: cost is then NA.
	Prices *PriceBook `json:"prices"`
	// Seed seeds the resampling.
	Seed uint64 `json:"seed"`
}

// weightTolerance is how far the weights may sum from 1.
const weightTolerance = 1e-9

// AddTasks gives the profile the tasks of a data set, where it has none of its own.
func (p *Profile) AddTasks(tasks map[string]Task) {
	if p.Tasks == nil {
		p.Tasks = map[string]Task{}
	}
	for name, t := range tasks {
		if _, ok := p.Tasks[name]; !ok {
			p.Tasks[name] = t
		}
	}
}

// Validate checks that the profile can score: weights that sum to 1, anchors in order,
// utilities in [0,1], prices with known units.
func (p *Profile) Validate() error {
	errs := []error{p.validateWeights(), p.validateAnchors(), p.validateShares(), p.Prices.validate()}
	for _, name := range sortedKeys(p.Tasks) {
		if err := p.Tasks[name].validate(); err != nil {
			errs = append(errs, fmt.Errorf("scenario %s: %w", name, err))
		}
	}
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("profile %s: %w", p.Name, err)
		}
	}
	return nil
}

func inUnit(x float64) bool { return x >= 0 && x <= 1 }

func (p *Profile) validateWeights() error {
	sum := 0.0
	for _, w := range p.Weights.list() {
		if !inUnit(w) {
			return fmt.Errorf("weight %v is not in [0,1]", w)
		}
		sum += w
	}
	if math.Abs(sum-1) > weightTolerance {
		return fmt.Errorf("weights sum to %v, not 1", sum)
	}
	return nil
}

func (p *Profile) validateAnchors() error {
	if l := p.Latency; !(l.Good > 0 && l.Bad > l.Good && l.Deadline > 0) {
		return fmt.Errorf("latency anchors %v, %v and deadline %v must be positive and in order", l.Good, l.Bad, l.Deadline)
	}
	if c := p.Cost; !(c.Good > 0 && c.Bad > c.Good && !math.IsInf(c.Bad, 1)) {
		return fmt.Errorf("cost anchors %v and %v must be positive and in order", c.Good, c.Bad)
	}
	return nil
}

func (p *Profile) validateShares() error {
	sum := 0.0
	for _, name := range sortedKeys(p.ScenarioWeights) {
		w := p.ScenarioWeights[name]
		if !inUnit(w) {
			return fmt.Errorf("scenario weight %v of %s is not in [0,1]", w, name)
		}
		sum += w
	}
	if sum > 1+weightTolerance {
		return fmt.Errorf("scenario weights sum to %v, above 1", sum)
	}
	return nil
}

func (t Task) validate() error {
	for _, truth := range sortedKeys(t.Utility) {
		for _, action := range sortedKeys(t.Utility[truth]) {
			if u := t.Utility[truth][action]; !inUnit(u) {
				return fmt.Errorf("utility %v of %s under truth %s is not in [0,1]", u, action, truth)
			}
		}
	}
	if u := t.Unanswered; u != nil && !inUnit(*u) {
		return fmt.Errorf("utility %v of no answer is not in [0,1]", *u)
	}
	for _, n := range []Number{t.Baseline, t.Top, t.Majority, t.Ceiling} {
		if !math.IsNaN(float64(n)) && !inUnit(float64(n)) {
			return fmt.Errorf("anchor %v is not in [0,1]", n)
		}
	}
	return nil
}

func (b *PriceBook) validate() error {
	if b == nil {
		return nil
	}
	for _, p := range b.Prices {
		if !slices.Contains(units(), p.Unit) {
			return fmt.Errorf("price book: unknown unit %q", p.Unit)
		}
		if !(p.Price >= 0) || math.IsInf(p.Price, 1) {
			return fmt.Errorf("price book: price %v of %s", p.Price, p.Backend)
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// ErrUnknownPreset reports a preset that does not exist.
var ErrUnknownPreset = errors.New("unknown profile preset")

// PresetNames lists the presets.
func PresetNames() []string {
	return []string{"default", "inline-guard", "async", "fraud", "waf", "llm-router", "agent-gate"}
}

// The latency scales: an inline guard has microseconds, a request path milliseconds,
// and what runs beside the path seconds.
func requestPath() LatencyAnchors {
	return LatencyAnchors{Good: 500 * time.Microsecond, Bad: time.Second, Deadline: 100 * time.Millisecond}
}

func inlineGuard() LatencyAnchors {
	return LatencyAnchors{Good: 50 * time.Microsecond, Bad: 100 * time.Millisecond, Deadline: 15 * time.Millisecond}
}

func async() LatencyAnchors {
	return LatencyAnchors{Good: 10 * time.Millisecond, Bad: 10 * time.Second, Deadline: 2 * time.Second}
}

// Preset returns a profile by name: weights and latency scale for a sort of traffic,
// with the common cost scale and floors. It has no tasks and no prices yet. The error
// wraps [ErrUnknownPreset] and names the nearest preset.
func Preset(name string) (*Profile, error) {
	p := &Profile{
		Name: name, Weights: Weights{0.40, 0.25, 0.15, 0.20}, Latency: requestPath(),
		Cost: CostAnchors{Good: 0.0001, Bad: 10}, Floors: Floors{Accuracy: 0, Attainment: 0.95, Auditability: 30},
		Tasks: map[string]Task{},
	}
	switch name {
	case "default":
	case "inline-guard", "waf":
		p.Weights, p.Latency = Weights{0.35, 0.35, 0.10, 0.20}, inlineGuard()
	case "async":
		p.Latency = async()
	case "fraud":
		p.Weights = Weights{0.50, 0.20, 0.10, 0.20}
	case "llm-router":
		p.Weights = Weights{0.45, 0.20, 0.25, 0.10}
	case "agent-gate":
		p.Weights = Weights{0.45, 0.20, 0.05, 0.30}
	default:
		if near := document.Closest(name, PresetNames()); near != "" {
			return nil, fmt.Errorf("%w %q: did you mean %q?", ErrUnknownPreset, name, near)
		}
		return nil, fmt.Errorf("%w %q: known are %s", ErrUnknownPreset, name, strings.Join(PresetNames(), ", "))
	}
	return p, nil
}
