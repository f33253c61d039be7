package reports_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/clefbench/clefbench/reports"
	"github.com/clefbench/clefbench/scoring"
)

// number is an estimate with its interval.
func number(v, half float64) scoring.Estimate {
	return scoring.Estimate{Value: scoring.Number(v), Lo: scoring.Number(v - half), Hi: scoring.Number(v + half)}
}

// card is a small scorecard: one backend, whose cost nobody knows.
func card() *scoring.Scorecard {
	nan := scoring.Number(math.NaN())
	unpriced := scoring.Estimate{Value: nan, Lo: nan, Hi: nan, NA: "no price book"}
	b := scoring.BackendScore{Name: "rules", Kind: "rules"}
	b.Eligible = true
	b.Categories.Accuracy.Estimate = number(71.3, 1.5)
	b.Categories.Latency.Estimate = number(98, 0.5)
	b.Categories.Cost.Estimate = unpriced
	b.Categories.Auditability.Estimate = number(91.2, 2)
	b.Total = scoring.Estimate{Value: nan, Lo: nan, Hi: nan, NA: "cost is NA"}
	b.CostPer1000, b.Agreement, b.ActionAccuracy = unpriced, number(0.88, 0.01), number(0.91, 0.01)
	b.Geometric = nan
	b.Counts = scoring.Counts{Offered: 1200, Answered: 1200, Labelled: 1200, Clusters: 400}
	b.LatencyNs = scoring.Quantiles{P50: 612, P95: 1090, P99: 1380, Cold: 25_100}
	return &scoring.Scorecard{
		ScoreVersion: scoring.Version,
		Backends:     []scoring.BackendScore{b},
		Dataset:      scoring.DatasetInfo{Snapshots: 1200, Requests: 1200, Intact: true},
	}
}

func ExampleText() {
	var b bytes.Buffer
	if err := reports.Text(&b, card(), reports.Options{Width: 80}); err != nil {
		fmt.Println(err)
	}
	top, _, _ := strings.Cut(b.String(), "\nBeside the score")
	fmt.Print(top)
	// Output:
	// clefbench report
	// - No backend leads: none is eligible and has a total.
	// - Refused (NA): the cost of rules: no price book.
	// - Refused (NA): the total of rules: cost is NA.
	// - 1,200 decisions in 1,200 requests, 0 scenarios, through 1 backend.
	//
	// Scorecard
	// Scores from 0 to 100 with 95% intervals. Backends with the same place (1=)
	// cannot be told apart.
	//
	//  #  backend   total   accuracy    latency    cost      audit      p50
	//                                                                   p99
	// ──────────────────────────────────────────────────────────────────────
	//  -  rules    NA (1)       71.3       98.0  NA (2)       91.2   612 ns
	//                      69.8–72.8  97.5–98.5          89.2–93.2  1.38 µs
}

func ExampleMarkdown() {
	var b bytes.Buffer
	if err := reports.Markdown(&b, card(), reports.Options{Title: "week_20 | edge"}); err != nil {
		fmt.Println(err)
	}
	title, _, _ := strings.Cut(b.String(), "\n")
	_, notes, _ := strings.Cut(b.String(), "## Notes\n\n")
	notes, _, _ = strings.Cut(notes, "\n\n")
	fmt.Println(title)
	fmt.Println(notes)
	// Output:
	// # week_20 \| edge
	// 1. NA: cost is NA
	// 2. NA: no price book
}

func ExampleHTML() {
	var b bytes.Buffer
	if err := reports.HTML(&b, card(), reports.Options{}); err != nil {
		fmt.Println(err)
	}
	page := b.String()
	fmt.Println(strings.Count(page, "<script"), "script element, of type", strings.Contains(page, `type="application/json"`))
	fmt.Println("requests:", strings.Count(page, "http://")+strings.Count(page, "https://"))
	// Output:
	// 1 script element, of type true
	// requests: 0
}

func ExampleJSON() {
	if err := reports.JSON(os.Stdout, &scoring.Scorecard{ScoreVersion: scoring.Version}, reports.Options{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {
	//   "score_version": "1",
	//   "profile": null,
	//   "dataset": {
	//     "snapshots": 0,
	//     "requests": 0,
	//     "digest": "",
	//     "ledger": {
	//       "offered": 0,
	//       "written": 0,
	//       "sampled_out": 0,
	//       "dropped": {}
	//     },
	//     "intact": false
	//   },
	//   "backends": [],
	//   "pairs": [],
	//   "ties": [],
	//   "warnings": [],
	//   "run": {
	//     "path": "",
	//     "digest": "",
	//     "seed": 0
	//   }
	// }
}

func ExampleReadJSON() {
	var b bytes.Buffer
	if err := reports.JSON(&b, card(), reports.Options{}); err != nil {
		fmt.Println(err)
	}
	back, err := reports.ReadJSON(&b)
	if err != nil {
		fmt.Println(err)
		return
	}
	total := back.Backends[0].Total
	fmt.Println(math.IsNaN(float64(total.Value)), total.NA)

	_, err = reports.ReadJSON(strings.NewReader(`{"score_version": "7"}`))
	fmt.Println(err)
	// Output:
	// true cost is NA
	// unknown score version "7": this build knows "1"
}

func ExampleParseFormat() {
	f, err := reports.ParseFormat("out/report.md")
	fmt.Println(f, err)
	_, err = reports.ParseFormat("report.pdf")
	fmt.Println(err)
	// Output:
	// markdown <nil>
	// unknown report format "report.pdf": use one of [text markdown html json]
}

func ExampleTable() {
	t := &reports.Table{
		Header: []string{"backend", "p99"},
		Align:  []reports.Align{reports.AlignLeft, reports.AlignRight},
		Rows:   [][]string{{"flash", "113 ns"}, {"rules", "1.38 µs"}},
	}
	if err := t.WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	//  backend      p99
	// ──────────────────
	//  flash     113 ns
	//  rules    1.38 µs
}
