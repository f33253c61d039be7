package scoring

import "time"

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
