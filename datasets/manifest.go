package datasets

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/clefbench/clefbench/internal/document"
	"github.com/clefbench/clefbench/internal/wholefile"
	"github.com/clefbench/clefbench/scoring"
)

// ManifestName is the file that says what a data set is about.
const ManifestName = "dataset.yaml"

// manifestVersion is the version of dataset.yaml: a file with a higher one is refused.
const manifestVersion = 1

// Manifest is dataset.yaml.
type Manifest struct {
	Name string
	// Preset names the scoring profile to use when none is asked for.
	Preset string
	// Tasks is by scenario.
	Tasks map[string]scoring.Task
	// Labels holds the SHA-256 of each label file, in hex, by the file's name: those whose
	// labels the anchors of the tasks rest on.
	Labels map[string]string
}

// ParseManifest reads dataset.yaml; the name stands in positions and the error is a
// document.Problems with everything that is wrong. A number that is absent is NaN.
func ParseManifest(name string, data []byte) (*Manifest, error) {
	f, root, err := document.Parse(name, data)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Tasks: map[string]scoring.Task{}}
	top := root.Map("version", "name", "preset", "tasks", "labels")
	if v := top.Need("version"); v != nil {
		v.Int(manifestVersion, manifestVersion)
	}
	m.Name, m.Preset = text(top.Get("name")), text(top.Get("preset"))
	if tasks := top.Get("tasks"); tasks != nil {
		for _, e := range tasks.Map().Entries() {
			if e.Key == "" {
				f.Errorf(e.KeyPos, "", "a scenario needs a name")
			}
			m.Tasks[e.Key] = scoring.ReadTask(e.Value)
		}
	}
	if labels := top.Get("labels"); labels != nil {
		m.Labels = parseLabels(labels)
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return m, nil
}

// parseLabels reads digests by file. Names are those of files in the directory itself:
// no path leads out of it.
func parseLabels(n *document.Node) map[string]string {
	out := map[string]string{}
	for _, e := range n.Map().Entries() {
		sum := text(e.Value)
		if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size || sum != strings.ToLower(sum) {
			e.Value.Errorf("", "%s is not a SHA-256 in lower-case hex", e.Value.Path())
		}
		if !strings.HasSuffix(e.Key, labelExt) || strings.ContainsAny(e.Key, "/\\\x00") {
			n.File().Errorf(e.KeyPos, "", "%q is not the name of a label file", e.Key)
		}
		out[e.Key] = sum
	}
	return out
}

func text(n *document.Node) string {
	if n == nil {
		return ""
	}
	s, _ := n.Text()
	return s
}

// Format returns the manifest as dataset.yaml, in one fixed order: equal manifests give
// equal bytes.
func (m *Manifest) Format() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# What the data set is about; numbers that are missing are computed from the run.\nversion: %d\n", manifestVersion)
	field(&b, "", "name", m.Name)
	field(&b, "", "preset", m.Preset)
	if len(m.Tasks) > 0 {
		b.WriteString("tasks:\n")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Tasks)) {
		fmt.Fprintf(&b, "  %s:\n", quote(name))
		formatTask(&b, m.Tasks[name])
	}
	if len(m.Labels) > 0 {
		b.WriteString("labels:\n")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Labels)) {
		fmt.Fprintf(&b, "  %s: %s\n", quote(name), quote(m.Labels[name]))
	}
	return b.Bytes()
}

func formatTask(b *bytes.Buffer, t scoring.Task) {
	const in = "    "
	start := b.Len()
	if len(t.Candidates) > 0 {
		quoted := make([]string, len(t.Candidates))
		for i, c := range t.Candidates {
			quoted[i] = quote(c)
		}
		fmt.Fprintf(b, "%scandidates: [%s]\n", in, strings.Join(quoted, ", "))
	}
	if t.Utility != nil {
		formatUtility(b, t.Utility)
	}
	if t.Unanswered != nil {
		number(b, in, "unanswered", *t.Unanswered)
	}
	number(b, in, "baseline", float64(t.Baseline))
	field(b, in, "baseline_action", t.BaselineAction)
	number(b, in, "top", float64(t.Top))
	number(b, in, "majority", float64(t.Majority))
	number(b, in, "ceiling", float64(t.Ceiling))
	field(b, in, "label_strength", t.LabelStrength)
	if b.Len() == start {
		b.Truncate(start - 1)
		b.WriteString(" {}\n")
	}
}

func formatUtility(b *bytes.Buffer, utility map[string]map[string]float64) {
	if len(utility) == 0 {
		b.WriteString("    utility: {}\n")
		return
	}
	b.WriteString("    utility:\n")
	for _, truth := range slices.Sorted(maps.Keys(utility)) {
		var cells []string
		for _, action := range slices.Sorted(maps.Keys(utility[truth])) {
			cells = append(cells, quote(action)+": "+float(utility[truth][action]))
		}
		fmt.Fprintf(b, "      %s: {%s}\n", quote(truth), strings.Join(cells, ", "))
	}
}

func field(b *bytes.Buffer, indent, key, value string) {
	if value != "" {
		fmt.Fprintf(b, "%s%s: %s\n", indent, key, quote(value))
	}
}

func number(b *bytes.Buffer, indent, key string, value float64) {
	if !math.IsNaN(value) {
		fmt.Fprintf(b, "%s%s: %s\n", indent, key, float(value))
	}
}

func float(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// quote writes text as JSON does, which YAML reads as double-quoted text.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return strconv.Quote(s) // not reached: every string has a JSON form
	}
	return string(b)
}

// WriteManifest writes dataset.yaml of the directory, atomically. What it would not read
// back is an error, and the old file stays.
func WriteManifest(dir string, m *Manifest) error {
	data := m.Format()
	if _, err := ParseManifest(ManifestName, data); err != nil {
		return fmt.Errorf("data set %q: %w", m.Name, err)
	}
	return wholefile.Write(filepath.Join(dir, ManifestName), data)
}

// readManifest returns an empty manifest where the directory has none.
func readManifest(dir string) (*Manifest, []byte, error) {
	path := filepath.Join(dir, ManifestName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Manifest{Tasks: map[string]scoring.Task{}}, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	m, err := ParseManifest(path, data)
	return m, data, err
}
