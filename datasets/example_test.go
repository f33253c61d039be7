package datasets_test

import (
	"fmt"
	"log"
	"os"
	"time"

	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// record writes a data set of two decisions.
func record(dir string) {
	w, err := arrowfile.Create(dir, arrowfile.Options{Host: "host", Boot: "boot"})
	if err != nil {
		log.Fatal(err)
	}
	for i, action := range []string{"allow", "block"} {
		err := w.Append(&snapshot.Snapshot{
			ID: decision.ID{byte(i + 1)}, RequestID: decision.ID{byte(i + 1)}, SourceID: fmt.Sprint("order-", i),
			Status: decision.OK, Action: action, Scenario: "fraud", Time: time.Unix(int64(i), 0), KeepProb: 1,
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Close(snapshot.Ledger{}, snapshot.Ledger{Offered: 2, Written: 2}); err != nil {
		log.Fatal(err)
	}
}

func tempDir() string {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	return dir
}

// Attach the truth that came later to recorded decisions, and read both.
func ExampleAttachLabels() {
	dir := tempDir()
	defer os.RemoveAll(dir)
	record(dir)

	task := scoring.NewTask()
	task.Candidates = []string{"allow", "block"}
	if err := datasets.WriteManifest(dir, &datasets.Manifest{Name: "orders", Tasks: map[string]scoring.Task{"fraud": task}}); err != nil {
		log.Fatal(err)
	}
	truth := map[string]string{"order-0": "block", "order-1": "block"}
	report, err := datasets.AttachLabels(dir, func(s *snapshot.Snapshot) *snapshot.Label {
		return &snapshot.Label{Action: truth[s.SourceID], Source: "chargebacks"}
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Labelled, "labelled")

	d, err := datasets.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	for l, err := range d.Labels(datasets.Filter{}) {
		fmt.Println(l.Ref.Row, l.Action, err)
	}
	t := d.Tasks()["fraud"]
	fmt.Println("always", t.BaselineAction, "earns", t.Baseline)
	// Output:
	// 2 labelled
	// 0 block <nil>
	// 1 block <nil>
	// always block earns 1
}

// The generator's rows come with their exact truth in distribution: here, what the best
// possible backend would earn.
func ExampleEdgeRouting() {
	sum, n := 0.0, 0
	for ex, truth := range datasets.EdgeRouting(42, 0, 1000) {
		if n == 0 {
			fmt.Println(ex.Candidates, ex.Attrs.Get("local.content_class"), ex.Attrs.Get("metrics.window_requests"))
		}
		sum += max(truth.Best[0], truth.Best[1], truth.Best[2])
		n++
	}
	fmt.Printf("ceiling of these rows: %.2f\n", sum/float64(n))
	// Output:
	// [edge_cache regional origin] html 17
	// ceiling of these rows: 0.82
}
