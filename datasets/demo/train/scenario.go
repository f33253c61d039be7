package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/scoring"
)

// scenario is what the trainer has to know to make one scenario's files. All of it was
// chosen by a person, on the training rows (cuts and prior of the matrices by five-fold
// cross-validation among a handful: finer ones fitted the rows and not the world); the
// weights and cells are fitted.
type scenario struct {
	name, version string
	task          scoring.Task
	// dims and prior are the matrix: how it is cut, and how many rows' worth of the wider
	// cell each cell is drawn to.
	dims  []dim
	prior float64
	// features and l2 are the model.
	features []feature
	l2       float64
}

const version = "2026-11"

// setUp returns the set-up of a scenario; rows are its training rows, from which
// the words of the api-abuse model are taken.
func setUp(name string, rows []*datasets.Example) (*scenario, error) {
	task, err := datasets.DemoTask(name)
	if err != nil {
		return nil, err
	}
	s := &scenario{name: name, version: version, task: task}
	switch name {
	case datasets.APIAbuse:
		s.agents(rows)
	case datasets.Fraud:
		s.credit()
	case datasets.EdgeRoute:
		s.edge()
	}
	if s.task.Utility == nil {
		s.task.Utility = s.meanUtility(rows)
	}
	return s, nil
}

// utilities returns a row's utility of each candidate.
func (s *scenario) utilities(ex *datasets.Example) []float64 {
	u := make([]float64, len(s.task.Candidates))
	for i, c := range s.task.Candidates {
		u[i] = s.task.Utility[ex.Label.Action][c]
		for _, own := range ex.Label.Utilities {
			if own.Action == c {
				u[i] = own.Utility
			}
		}
	}
	return u
}

// meanUtility is the matrix of a scenario whose rows have utilities of their own: what
// an action earns on average where another one is right.
func (s *scenario) meanUtility(rows []*datasets.Example) map[string]map[string]float64 {
	n, sum := map[string]float64{}, map[string]map[string]float64{}
	for _, c := range s.task.Candidates {
		sum[c] = map[string]float64{}
	}
	for _, ex := range rows {
		n[ex.Label.Action]++
		for _, u := range ex.Label.Utilities {
			sum[ex.Label.Action][u.Action] += u.Utility
		}
	}
	for truth := range sum {
		for action := range sum[truth] {
			sum[truth][action] = round(sum[truth][action] / n[truth])
		}
	}
	return sum
}

func (s *scenario) agents(rows []*datasets.Example) {
	families := map[string]bool{}
	for _, ex := range rows {
		families[ex.Attrs.Get("local.ua_family").Str()] = true
	}
	delete(families, "none")
	listed := slices.Sorted(maps.Keys(families))
	s.dims = []dim{
		words("family", "local.ua_family", append(listed, "none")...),
		words("contact", "local.ua_contact", "true", "false"),
		words("browser", "local.ua_browser", "true", "false"),
		ranges("length", "local.ua_length", false, "35", "70", "110"),
	}
	s.prior, s.l2 = 6, 1
	for _, f := range listed {
		s.features = append(s.features, feature{attr: "local.ua_family", equals: f})
	}
	s.features = append(s.features,
		feature{attr: "local.ua_contact", equalsTrue: true},
		feature{attr: "local.ua_browser", equalsTrue: true},
		feature{attr: "local.ua_length", bins: []float64{20, 35, 50, 70, 90, 110, 140}})
	for _, w := range agentWords(rows) {
		s.features = append(s.features, feature{attr: "headers.user-agent", contains: w})
	}
}

// agentWords lists the words of four letters and more that stand in at least eight
// training user agents.
func agentWords(rows []*datasets.Example) []string {
	word, count := regexp.MustCompile(`[a-z]{4,}`), map[string]int{}
	for _, ex := range rows {
		seen := map[string]bool{}
		for _, w := range word.FindAllString(strings.ToLower(ex.Attrs.Get("headers.user-agent").Str()), -1) {
			if !seen[w] {
				seen[w] = true
				count[w]++
			}
		}
	}
	maps.DeleteFunc(count, func(_ string, n int) bool { return n < 8 })
	return slices.Sorted(maps.Keys(count))
}

func (s *scenario) credit() {
	s.dims = []dim{
		words("records", "local.records", "yes", "no"),
		ranges("income", "local.income", true, "100"),
		ranges("seniority", "local.seniority", false, "3"),
		ranges("financed", "local.financed", true, "0.75"),
		words("job", "local.job", "fixed", "freelance", "partime"),
		words("home", "local.home", "owner", "rent", "parents"),
	}
	s.prior, s.l2 = 8, 4
	for _, c := range []struct {
		attr   string
		values []string
	}{
		{"local.home", []string{"owner", "rent", "parents", "other", "priv"}},
		{"local.marital", []string{"married", "single", "separated", "divorced"}},
		{"local.records", []string{"yes"}},
		{"local.job", []string{"fixed", "freelance", "partime"}},
	} {
		for _, v := range c.values {
			s.features = append(s.features, feature{attr: c.attr, equals: v})
		}
	}
	for _, b := range []struct {
		attr  string
		edges []float64
	}{
		{"local.seniority", []float64{1, 2, 3, 5, 8, 12, 18}},
		{"local.time", []float64{24, 36, 48, 60}},
		{"local.age", []float64{25, 30, 40, 50, 60}},
		{"local.expenses", []float64{40, 50, 60, 80}},
		{"local.income", []float64{60, 80, 100, 120, 150, 200, 300}},
		{"local.assets", []float64{1, 2000, 4000, 7000, 12000}},
		{"local.debt", []float64{1, 1000, 3000}},
		{"local.amount", []float64{500, 800, 1000, 1300, 1600, 2000}},
		{"local.price", []float64{800, 1200, 1500, 2000}},
		{"local.financed", []float64{0.4, 0.55, 0.65, 0.75, 0.85, 0.95}},
	} {
		s.features = append(s.features, feature{attr: b.attr, bins: b.edges})
	}
	for _, a := range []string{"local.income", "local.assets", "local.debt"} {
		s.features = append(s.features, feature{attr: a, present: true})
	}
}

func (s *scenario) edge() {
	s.dims = []dim{
		words("content", "local.content_class", "html", "image", "video", "api"),
		ranges("fresh", "metrics.fresh_s", false, "150", "400", "800", "1800"),
		ranges("requests", "metrics.window_requests", false, "3", "6", "10", "15", "20", "28", "40", "64"),
		ranges("size", "metrics.object_kb", false, "60", "200", "2000"),
	}
	s.prior, s.l2 = 4, 1
	for _, c := range []string{"html", "image", "video", "api"} {
		s.features = append(s.features, feature{attr: "local.content_class", equals: c})
	}
	s.features = append(s.features,
		feature{attr: "metrics.window_requests", log: true},
		feature{attr: "metrics.window_requests", bins: []float64{1, 3, 6, 10, 16, 24, 36, 64}},
		feature{attr: "metrics.fresh_s", log: true},
		feature{attr: "metrics.fresh_s", bins: []float64{60, 150, 300, 600, 1000, 1800}},
		feature{attr: "metrics.object_kb", log: true})
}
