package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/clefbench/clefbench/decision"
)

// nMetrics is the number of metrics in a request, nAgents that of distinct user agents.
const (
	nMetrics = 16
	nAgents  = 64
	nInputs  = 256
)

// rule is "the user agent holds a token, and a metric is above or below a threshold".
type rule struct {
	token     string
	metric    int
	above     bool
	threshold float64
}

// ruleset is rules and the inputs to ask about. Every rule has an action of its own, r0,
// r1, ..., since Cedar cannot say otherwise which of two rules comes first. Numbers have
// four digits, which Cedar's decimals hold.
type ruleset struct {
	rules  []rule
	agents []string
	schema *decision.Schema
	inputs []*decision.Request
	want   []int // the rule that decides; -1 for the fallback
}

func newRuleset(n int) *ruleset {
	r := rand.New(rand.NewPCG(7, uint64(n)))
	s := &ruleset{}
	for i := range n {
		s.rules = append(s.rules, rule{fmt.Sprintf("tk%04d", i), r.IntN(nMetrics), r.IntN(2) == 0, float64(2000+r.IntN(6000)) / 1e4})
	}
	for range nAgents {
		s.agents = append(s.agents, fmt.Sprintf("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 tk%04d tk%04d",
			r.IntN(n), r.IntN(2*n))) // the second token is often no rule's
	}
	fields := []decision.Field{{Name: "headers.user-agent", Type: decision.String}}
	for i := range nMetrics {
		fields = append(fields, decision.Field{Name: fmt.Sprintf("metrics.m%d", i), Type: decision.Double})
	}
	var err error
	if s.schema, err = decision.NewSchema(fields...); err != nil {
		panic(err) // the names are distinct
	}
	for range nInputs {
		values := []decision.Value{decision.StringValue(s.agents[r.IntN(nAgents)])}
		for range nMetrics {
			values = append(values, decision.DoubleValue(float64(r.IntN(10_000))/1e4))
		}
		s.inputs = append(s.inputs, &decision.Request{Scenario: "edge", Attrs: decision.Attrs{Schema: s.schema, Values: values},
			Questions: []decision.Question{{Type: decision.QuestionAction}}})
		s.want = append(s.want, s.reference(values))
	}
	return s
}

// reference is the loop that every engine must agree with.
func (s *ruleset) reference(values []decision.Value) int {
	agent := values[0].Str()
	for i := range s.rules {
		r := &s.rules[i]
		x := values[1+r.metric].Double()
		if strings.Contains(agent, r.token) && (r.above && x > r.threshold || !r.above && x < r.threshold) {
			return i
		}
	}
	return -1
}

func action(rule int) string {
	if rule < 0 {
		return "origin"
	}
	return fmt.Sprintf("r%d", rule)
}

func (r *rule) op() string {
	if r.above {
		return ">"
	}
	return "<"
}

// cel is the rule set as a strategy or as a file of plain CEL, whose rules are the same.
func (s *ruleset) cel(head string) string {
	var b strings.Builder
	b.WriteString(head + ": bench\nrules:\n")
	for i := range s.rules {
		r := &s.rules[i]
		fmt.Fprintf(&b, "  - {id: r%d, if: 'headers[\"user-agent\"].contains(\"%s\") && metrics.m%d %s %.4f', action: r%d}\n", i, r.token, r.metric, r.op(), r.threshold, i)
	}
	b.WriteString("fallback: {action: origin}\n")
	return b.String()
}

func (s *ruleset) yaml() string {
	var b strings.Builder
	b.WriteString("version: \"1\"\nrules:\n")
	for i := range s.rules {
		r := &s.rules[i]
		op := "lt"
		if r.above {
			op = "gt"
		}
		fmt.Fprintf(&b, "  - id: r%d\n    conditions:\n      - {field: headers.user-agent, operator: contains, value: %s}\n      - {field: metrics.m%d, operator: %s, value: %.4f}\n    action: r%d\n",
			i, r.token, r.metric, op, r.threshold, i)
	}
	b.WriteString("fallback: origin\n")
	return b.String()
}

func (s *ruleset) cedar() (mapping, policies string) {
	var m, p strings.Builder
	m.WriteString("cedar: bench\npolicies: p.cedar\nfallback: origin\nactions:\n")
	for i := range s.rules {
		r := &s.rules[i]
		op := "lessThan"
		if r.above {
			op = "greaterThan"
		}
		fmt.Fprintf(&m, "  - r%d\n", i)
		fmt.Fprintf(&p, "@id(\"r%d\")\npermit(principal, action == Action::\"r%d\", resource)\nwhen { context.headers[\"user-agent\"] like \"*%s*\" && context.metrics.m%d.%s(decimal(\"%.4f\")) };\n",
			i, i, r.token, r.metric, op, r.threshold)
	}
	return m.String(), p.String()
}

func (s *ruleset) rego() string {
	var b strings.Builder
	b.WriteString("package bench\n\ndefault decision := \"origin\"\n\n")
	for i := range s.rules {
		r := &s.rules[i]
		head := "decision :="
		if i > 0 {
			head = "else :="
		}
		fmt.Fprintf(&b, "%s {\"action\": \"r%d\", \"rule\": \"r%d\"} if {\n\tcontains(input.headers[\"user-agent\"], \"%s\")\n\tinput.metrics.m%d %s %.4f\n}\n",
			head, i, i, r.token, r.metric, r.op(), r.threshold)
	}
	return b.String()
}
