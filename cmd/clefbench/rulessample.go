package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/clefbench/clefbench/backends"
	"github.com/clefbench/clefbench/decision"
)

// sampleAnswer is the decision on a sample, as it is printed.
type sampleAnswer struct {
	Status     string          `json:"status"`
	Action     string          `json:"action,omitempty"`
	Params     json.RawMessage `json:"params,omitempty"`
	Reason     string          `json:"reason"`
	Rule       string          `json:"rule,omitempty"`
	Confidence *float64        `json:"confidence,omitempty"`
	Tags       []string        `json:"tags,omitempty"`
	Error      string          `json:"error,omitempty"`
	Text       string          `json:"text,omitempty"`
	Position   string          `json:"position,omitempty"`
	Conditions []sampleCond    `json:"conditions,omitempty"`
	Skipped    []sampleSkipped `json:"skipped,omitempty"`
	Version    string          `json:"strategy_version,omitempty"`
}

type sampleCond struct {
	Condition string `json:"condition"`
	Value     string `json:"value,omitempty"`
	Truth     string `json:"truth"`
}

type sampleSkipped struct {
	Rule  string `json:"rule"`
	Cause string `json:"cause"`
}

// decideSample asks a rules, strategy or model file about one sample and prints the decision.
func (a *app) decideSample(ctx context.Context, kind, name string, data []byte, schema *decision.Schema, from string, sample []byte) error {
	if kind != "rules" && kind != "strategy" && kind != "model" {
		return fail(exitUsage, "", "a %s file decides no sample: --sample is for rules, strategies and models", kind)
	}
	attrs, err := sampleAttrs(sample)
	if err != nil {
		return fail(exitData, `as in {"path":"/","metrics":{"load":0.9}}`, "%s: %w", sampleName(from), err)
	}
	b, err := kinds()[kind].Open(ctx, backends.Source{Name: kind, Path: name, Data: data, Schema: schema})
	if err != nil {
		return err
	}
	defer b.Close(ctx)
	req := &decision.Request{ID: decision.NewID(time.Now()), Attrs: attrs, Now: time.Now(), Questions: make([]decision.Question, 1)}
	if s := b.Info().Scenarios; len(s) > 0 {
		req.Scenario = s[0]
	}
	var out decision.Response
	if err := b.Decide(ctx, req, &out); err != nil {
		return err
	}
	answer := answerOf(&out)
	if e, ok := b.(decision.Explainer); ok {
		x, err := e.Explain(ctx, req)
		if err != nil {
			return err
		}
		answer.explain(x)
	}
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(answer)
}

func sampleName(from string) string {
	if from == "-" {
		return "stdin"
	}
	return from
}

func answerOf(out *decision.Response) *sampleAnswer {
	d := out.Decisions[0]
	s := &sampleAnswer{Status: d.Status.String(), Action: d.Action, Reason: d.Reason.Kind.String(), Rule: d.Reason.Rule,
		Error: d.Error, Version: out.Artefact.StrategyVersion}
	if d.Params != "" {
		s.Params = json.RawMessage(d.Params)
	}
	if d.Confidence.Set {
		s.Confidence = &d.Confidence.V
	}
	return s
}

func (s *sampleAnswer) explain(x *decision.Explanation) {
	s.Text, s.Position, s.Tags = x.Text, x.Position.String(), x.Tags
	for _, c := range x.Conditions {
		s.Conditions = append(s.Conditions, sampleCond{c.Text, c.Value, c.Truth})
	}
	for _, k := range x.Skipped {
		s.Skipped = append(s.Skipped, sampleSkipped{k.Rule, k.Cause})
	}
}

// sampleAttrs reads a JSON object of attributes, by dotted names or as objects in objects.
// A null is an absent attribute.
func sampleAttrs(sample []byte) (decision.Attrs, error) {
	dec := json.NewDecoder(bytes.NewReader(sample))
	dec.UseNumber()
	var object map[string]any
	if err := dec.Decode(&object); err != nil {
		return decision.Attrs{}, fmt.Errorf("a sample is a JSON object: %w", err)
	}
	flat := map[string]decision.Value{}
	if err := flatten("", object, flat); err != nil {
		return decision.Attrs{}, err
	}
	var fields []decision.Field
	var values []decision.Value
	for _, name := range slices.Sorted(maps.Keys(flat)) {
		fields = append(fields, decision.Field{Name: name, Type: flat[name].Type()})
		values = append(values, flat[name])
	}
	schema, err := decision.NewSchema(fields...)
	return decision.Attrs{Schema: schema, Values: values}, err
}

func flatten(prefix string, object map[string]any, into map[string]decision.Value) error {
	for key, x := range object {
		name := prefix + key
		if rest, ok := strings.CutPrefix(name, "headers."); ok {
			name = "headers." + strings.ToLower(rest)
		}
		switch v := x.(type) {
		case nil:
		case map[string]any:
			if err := flatten(name+".", v, into); err != nil {
				return err
			}
		case bool:
			into[name] = decision.BoolValue(v)
		case string:
			into[name] = decision.StringValue(v)
		case json.Number:
			n, err := numberOf(v)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			into[name] = n
		default:
			return fmt.Errorf("%s is a list, which no attribute can be", name)
		}
	}
	return nil
}

func numberOf(n json.Number) (decision.Value, error) {
	if i, err := n.Int64(); err == nil {
		return decision.IntValue(i), nil
	}
	f, err := n.Float64()
	return decision.DoubleValue(f), err
}
