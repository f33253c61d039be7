package fit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/clefbench/clefbench/decision"
)

// file writes the model, a feature or a class on a line.
func (d *design) file(w *weights, o *Options) []byte {
	var b bytes.Buffer
	b.WriteString("{\n  \"model\": \"logistic\",\n")
	fmt.Fprintf(&b, "  \"name\": %s,\n", quote(o.Name))
	if o.Version != "" {
		fmt.Fprintf(&b, "  \"version\": %s,\n", quote(o.Version))
	}
	if o.Scenario != "" {
		fmt.Fprintf(&b, "  \"scenarios\": [%s],\n", quote(o.Scenario))
	}
	lines := make([]string, len(d.features))
	for i := range d.features {
		lines[i] = d.features[i].json()
	}
	fmt.Fprintf(&b, "  \"features\": [\n    %s\n  ],\n", strings.Join(lines, ",\n    "))
	lines = lines[:0]
	first := len(d.classes) - w.groups
	for g := range w.groups {
		lines = append(lines, classJSON(d.classes[first+g].Action, w.of(g)))
	}
	fmt.Fprintf(&b, "  \"classes\": [\n    %s\n  ]", strings.Join(lines, ",\n    "))
	if first > 0 {
		fmt.Fprintf(&b, ",\n  \"otherwise\": %s", quote(d.classes[0].Action))
	}
	b.WriteString("\n}\n")
	return b.Bytes()
}

func (f *feature) json() string {
	name := `{"name": ` + quote(f.attr)
	switch f.kind {
	case present:
		return name + `, "present": true}`
	case equals:
		value := "true"
		if f.value.Type() == decision.String {
			value = quote(f.value.Str())
		}
		return name + `, "equals": ` + value + `, "missing": 0}`
	}
	return name + `, "mean": ` + number(f.mean) + `, "scale": ` + number(f.scale) + `, "missing": ` + number(f.mean) + "}"
}

func classJSON(action string, beta []float64) string {
	list := make([]string, len(beta)-1)
	for j, x := range beta[1:] {
		list[j] = number(x)
	}
	return `{"action": ` + quote(action) + `, "bias": ` + number(beta[0]) + `, "weights": [` + strings.Join(list, ", ") + "]}"
}

func number(x float64) string { return strconv.FormatFloat(round(x)+0, 'g', -1, 64) }

// quote writes JSON without the escapes that are for HTML.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // a string always encodes
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
