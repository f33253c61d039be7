package datasets

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/scoring"
)

func examples(t *testing.T, scenario string) (out []*Example) {
	t.Helper()
	for ex, err := range Demo(scenario) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, ex)
	}
	return out
}

// The digests are those of the sources as NOTICE states them.
func TestEmbeddedDataIsTheSource(t *testing.T) {
	notice, err := os.ReadFile("../NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	for name, shared := range map[string]string{
		"user_agents_npm.jsonl": "bots/user_agents_npm.jsonl",
		"credit_data.csv":       "tabular/credit_data.csv",
	} {
		data, err := embedded(name + ".gz")
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if !bytes.Contains(notice, []byte(hex.EncodeToString(sum[:]))) {
			t.Errorf("%s: digest %x is not in NOTICE", name, sum)
		}
		// The shared copy is there on some machines only; the digest above always holds.
		if want, err := os.ReadFile(filepath.Join("../../shared/data", shared)); err == nil && !bytes.Equal(want, data) {
			t.Errorf("%s differs from the shared copy", name)
		}
	}
}

func TestDemoRows(t *testing.T) {
	for scenario, want := range map[string]struct {
		rows   int
		labels map[string]int
	}{
		APIAbuse:  {3061, map[string]int{"allow": 952 + 421 + 257 + 134 + 92, "rate_limit": 685 + 103 + 97 + 90 + 67 + 36, "block": 107 + 20}},
		Fraud:     {4454, map[string]int{"approve": 3200, "block": 1254}},
		EdgeRoute: {5000, nil},
	} {
		rows := examples(t, scenario)
		if len(rows) != want.rows {
			t.Errorf("%s: %d rows, want %d", scenario, len(rows), want.rows)
		}
		task, err := DemoTask(scenario)
		if err != nil {
			t.Fatal(err)
		}
		labels, ids, train := map[string]int{}, map[string]bool{}, 0
		for _, ex := range rows {
			labels[ex.Label.Action]++
			ids[ex.SourceID] = true
			if ex.Train {
				train++
			}
			checkExample(t, scenario, task, ex)
		}
		for action, n := range want.labels {
			if labels[action] != n {
				t.Errorf("%s: %d rows are %s, want %d", scenario, labels[action], action, n)
			}
		}
		if len(ids) != len(rows) {
			t.Errorf("%s: %d source ids for %d rows", scenario, len(ids), len(rows))
		}
		if share := float64(train) / float64(len(rows)); share < 0.57 || share > 0.64 {
			t.Errorf("%s: %.3f of the rows are training", scenario, share)
		}
	}
}

func checkExample(t *testing.T, scenario string, task scoring.Task, ex *Example) {
	t.Helper()
	ex.Label.ID = decision.ID{1}
	if err := ex.Label.Validate(); err != nil {
		t.Error(err)
	}
	if ex.Scenario != scenario || !slices.Equal(ex.Candidates, task.Candidates) || !slices.Contains(ex.Candidates, ex.Label.Action) {
		t.Errorf("%s: candidates %q, label %q, task %q", ex.SourceID, ex.Candidates, ex.Label.Action, task.Candidates)
	}
	if ex.Attrs.Get("method").Str() != ex.Method || ex.Attrs.Get("path").Str() != ex.Path || ex.Attrs.Get("headers.user-agent").Str() != ex.Headers["User-Agent"] {
		t.Errorf("%s: attributes do not repeat the request", ex.SourceID)
	}
	for i, f := range ex.Attrs.Schema.Fields() {
		if v := ex.Attrs.At(i); !v.IsNull() && v.Type() != f.Type {
			t.Errorf("%s: %s is %v, declared %v", ex.SourceID, f.Name, v.Type(), f.Type)
		}
	}
	if task.Utility == nil && len(ex.Label.Utilities) == 0 {
		t.Errorf("%s: no utility, neither in the task nor in the label", ex.SourceID)
	}
}

// Rows with the same content must fall on one side of the split.
func TestSplitFollowsContent(t *testing.T) {
	side := map[string]bool{}
	for _, scenario := range []string{APIAbuse, Fraud} {
		for _, ex := range examples(t, scenario) {
			key := scenario
			for i, f := range ex.Attrs.Schema.Fields() {
				if f.Name != "path" {
					key += "|" + ex.Attrs.At(i).String()
				}
			}
			if was, ok := side[key]; ok && was != ex.Train {
				t.Errorf("%s: the same content is on both sides", ex.SourceID)
			}
			side[key] = ex.Train
		}
	}
}

func TestDemoOfUnknownScenario(t *testing.T) {
	for _, err := range Demo("frod") {
		if !errors.Is(err, ErrNoScenario) {
			t.Errorf("error %v", err)
		}
	}
	if _, err := DemoTask("frod"); !errors.Is(err, ErrNoScenario) {
		t.Errorf("error %v", err)
	}
}

func TestAgentFeatures(t *testing.T) {
	for _, c := range []struct {
		ua, family       string
		contact, browser bool
	}{
		{"Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", "bingbot", true, false},
		{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/146.0.0.0 Safari/537.36", "none", false, true},
		{"curl/8.0", "curl", false, false},
		{"", "none", false, false},
	} {
		family, contact, browser, length := agentFeatures(c.ua)
		if family != c.family || contact != c.contact || browser != c.browser || length != int64(len(c.ua)) {
			t.Errorf("%q: %s %v %v %d", c.ua, family, contact, browser, length)
		}
	}
}

func TestDemoFilesAreThere(t *testing.T) {
	for _, s := range DemoScenarios() {
		for _, f := range []string{"incumbent.yaml", "rules.yaml", "strategy.yaml", "matrix.json", "model.json"} {
			data, err := fs.ReadFile(DemoFiles(), "backends/"+s+"/"+f)
			if err != nil || len(data) == 0 {
				t.Errorf("%s/%s: %d bytes, %v", s, f, len(data), err)
			}
		}
	}
	if _, err := fs.Stat(DemoFiles(), "prices.yaml"); err != nil {
		t.Error(err)
	}
}
