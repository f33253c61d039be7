package scoring

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/clefbench/clefbench/internal/document"
)

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
