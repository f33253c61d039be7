package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/clefbench/clefbench/backends"
	"github.com/clefbench/clefbench/backends/flash"
	"github.com/clefbench/clefbench/backends/remote"
	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/replay"
	"github.com/clefbench/clefbench/reports"
	"github.com/clefbench/clefbench/scoring"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

func (a *app) demoCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run the whole pipe on embedded data: record, replay, score, report",
		Long: `Demo starts a decision service on loopback with the recorder in it, drives labelled
test traffic of three scenarios through it as HTTP requests, closes it, replays the
recorded snapshots through five backends (what was recorded, rules, strategy, flash,
and a remote decide service on loopback), scores them and prints the table. Every
number was measured in this run. It writes

  DIR/snapshots/               recorded segments, labels, dataset.yaml
  DIR/incumbent/<scenario>/    the rules that the recorded service ran
  DIR/backends/<scenario>/     rules.yaml strategy.yaml matrix.json flash.cfb model.json
  DIR/prices.yaml              an example price book
  DIR/run/                     outcomes of the replay
  DIR/report.{html,json,md}    the report

Strategies and models were made from the training part of the data; the traffic is the
test part.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), out) },
	}
	cmd.Flags().StringVarP(&out, "output", "o", "clefbench-demo", "directory to write")
	return cmd
}

// demo is one run of the command.
func (a *app) demo(ctx context.Context, out string) error {
	d := &demo{app: a, dir: out}
	if err := d.prepare(); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"writing strategies", d.writeBackends},
		{"recording", d.record},
		{"labelling", d.label},
		{"replaying", d.replay},
	} {
		if !a.quiet {
			fmt.Fprintf(a.stderr, "%s\n", step.name)
		}
		if err := step.do(ctx); err != nil {
			return err
		}
	}
	return d.report()
}

type demo struct {
	*app
	dir      string
	schemas  map[string]*decision.Schema
	examples []*datasets.Example
	sent     map[decision.ID]*datasets.Example
}

func (d *demo) path(parts ...string) string {
	return filepath.Join(append([]string{d.dir}, parts...)...)
}

// demoMarker is the file by which a demo knows its own directory again: it lists every
// file that the demo wrote, with its digest.
const demoMarker = ".clefbench-demo.json"

// prepare empties the directory of an earlier demo. Anything that no demo wrote, or that
// was changed since, is left alone: the names are names that people use, too.
func (d *demo) prepare() error {
	entries, err := os.ReadDir(d.dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return os.MkdirAll(d.dir, 0o777)
	}
	if err != nil {
		return usage(err, "")
	}
	const hint = "give an empty or new directory with -o"
	wrote, err := readMarker(d.path(demoMarker))
	if err != nil {
		return fail(exitUsage, hint, "%s is not empty and no demo wrote it", d.dir)
	}
	now, err := digests(d.dir)
	if err != nil {
		return err
	}
	for name, sum := range now {
		if wrote[name] != sum {
			return fail(exitUsage, hint, "%s holds %s, which no demo wrote or which was changed since", d.dir, name)
		}
	}
	for _, e := range entries {
		if err := os.RemoveAll(d.path(e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func readMarker(name string) (map[string]string, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var wrote map[string]string
	return wrote, json.Unmarshal(data, &wrote)
}

// mark writes the marker, last.
func (d *demo) mark() error {
	now, err := digests(d.dir)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(now, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(d.path(demoMarker), data)
}

// digests lists the files below a directory, but for the marker, with their SHA-256.
func digests(dir string) (map[string]string, error) {
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Base(path) == demoMarker {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	})
	return out, err
}

// writeBackends writes the embedded strategies and compiles the tables.
func (d *demo) writeBackends(context.Context) error {
	files := datasets.DemoFiles()
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return d.writeBackend(filepath.FromSlash(name), data)
	})
	if err != nil {
		return err
	}
	return d.loadExamples()
}

func (d *demo) writeBackend(name string, data []byte) error {
	target := d.path(name)
	switch filepath.Base(name) {
	case "incumbent.yaml":
		// What production runs is no candidate: it stands apart.
		target = d.path("incumbent", filepath.Base(filepath.Dir(name)), "rules.yaml")
	case "matrix.json":
		table, err := flash.CompileMatrix(target, data)
		if err != nil {
			return err
		}
		if err := d.write(filepath.Join(filepath.Dir(target), "flash.cfb"), table); err != nil {
			return err
		}
	}
	return d.write(target, data)
}

func (d *demo) write(target string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return err
	}
	return writeFile(target, data)
}

// loadExamples keeps the test part; the training part is what the strategies were made
// from, and is never asked.
func (d *demo) loadExamples() error {
	d.schemas = map[string]*decision.Schema{}
	for _, name := range datasets.DemoScenarios() {
		for ex, err := range datasets.Demo(name) {
			if err != nil {
				return err
			}
			d.schemas[name] = ex.Attrs.Schema
			if !ex.Train {
				d.examples = append(d.examples, ex)
			}
		}
	}
	return nil
}

// record runs the production service with the recorder in it and sends the traffic.
func (d *demo) record(ctx context.Context) (err error) {
	schema, service, err := d.incumbent(ctx)
	if err != nil {
		return err
	}
	capture := captureAll(schema)
	list := capture.Digest()
	w, err := arrowfile.Create(d.path("snapshots"), arrowfile.Options{CaptureDigest: hex.EncodeToString(list[:]),
		Seed: arrowfile.SeedOf(service.labels(), service.engine)})
	if err != nil {
		return err
	}
	key := make([]byte, 32)
	rand.Read(key)
	rec, err := recorder.New(w, recorder.Options{Capture: capture, EntityKey: key,
		Backend: "incumbent", CPUTime: threadClock()})
	if err != nil {
		return err
	}
	service.engine = rec.Wrap(service.engine)
	url, stop, err := serveLoopback(rec.Middleware(service))
	if err != nil {
		return err
	}
	d.sent, err = drive(ctx, url, d.examples)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	err = errors.Join(err, stop(closing), rec.Close(closing))
	if err == nil {
		err = d.keepArtefacts()
	}
	return err
}

// incumbent opens the rules that production runs.
func (d *demo) incumbent(ctx context.Context) (*decision.Schema, *incumbent, error) {
	var all []*decision.Schema
	service := &incumbent{schemas: d.schemas, tasks: map[string][]string{}}
	for _, name := range datasets.DemoScenarios() {
		task, err := datasets.DemoTask(name)
		if err != nil {
			return nil, nil, err
		}
		service.tasks[name] = task.Candidates
		all = append(all, d.schemas[name])
	}
	schema, err := decision.Union(all...)
	if err != nil {
		return nil, nil, err
	}
	spec := backends.Spec{Name: "incumbent", Kind: "rules", Target: d.path("incumbent")}
	service.engine, err = openBackend(ctx, spec, schema)
	return schema, service, err
}

// keepArtefacts stores the incumbent's rules by content hash beside the recording, so
// that recorded rule ids can be looked up.
func (d *demo) keepArtefacts() error {
	for _, name := range datasets.DemoScenarios() {
		data, err := os.ReadFile(d.path("incumbent", name, "rules.yaml"))
		if err != nil {
			return err
		}
		if err := datasets.StoreArtefact(d.path("snapshots"), data); err != nil {
			return err
		}
	}
	return nil
}

// label attaches the truth to what was recorded, and freezes the baselines.
func (d *demo) label(context.Context) error {
	tasks, err := tasksOf()
	if err != nil {
		return err
	}
	m := &datasets.Manifest{Name: "demo", Preset: "default", Tasks: tasks}
	if err := datasets.WriteManifest(d.path("snapshots"), m); err != nil {
		return err
	}
	report, err := datasets.AttachLabels(d.path("snapshots"), func(s *snapshot.Snapshot) *snapshot.Label {
		ex := d.sent[s.RequestID]
		if ex == nil {
			return nil
		}
		l := ex.Label
		return &l
	})
	if err == nil && report.Labelled != int64(len(d.examples)) {
		err = fmt.Errorf("%d of %d requests were recorded and labelled", report.Labelled, len(d.examples))
	}
	return err
}

func (d *demo) specs(remoteURL string) []string {
	dir := filepath.ToSlash(d.path("backends"))
	return []string{"recorded", "rules:" + dir, "strategy:" + dir, "flash:" + dir, "decide:" + remoteURL}
}

// replay starts the remote service (the model, behind the wire) and replays.
func (d *demo) replay(ctx context.Context) (err error) {
	served, err := openBackend(ctx, backends.Spec{Name: "model", Kind: "model", Target: d.path("backends")}, nil)
	if err != nil {
		return err
	}
	url, stop, err := serveLoopback(remote.Handler(served, remote.HandlerOptions{}))
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, stop(closing), served.Close(closing))
	}()
	f := &replayFlags{backends: d.specs(url), out: d.path("run"), plan: replay.DefaultPlan()}
	f.plan.Seed = demoSeed
	return d.app.replay(ctx, []string{d.path("snapshots")}, f)
}

// report scores the run, writes the three files and prints the table.
func (d *demo) report() error {
	card, err := scoreRun(d.path("run"), &scoreFlags{prices: d.path("prices.yaml")})
	if err != nil {
		return err
	}
	o := reports.Options{Title: "clefbench demo"}
	for _, name := range []string{"report.html", "report.json", "report.md"} {
		as, err := reports.ParseFormat(name)
		if err != nil {
			return err
		}
		if err := d.output(d.path(name), as, card, o); err != nil {
			return err
		}
	}
	o.Brief = true
	if err := d.mark(); err != nil {
		return err
	}
	if err := d.output("-", reports.FormatText, card, o); err != nil {
		return err
	}
	if !d.quiet {
		fmt.Fprintf(d.stderr, "\nwritten to %s: open %s\n", d.dir, d.path("report.html"))
	}
	return nil
}

// tasksOf says what the demo's scenarios are about.
func tasksOf() (map[string]scoring.Task, error) {
	tasks := map[string]scoring.Task{}
	for _, name := range datasets.DemoScenarios() {
		t, err := datasets.DemoTask(name)
		if err != nil {
			return nil, err
		}
		tasks[name] = t
	}
	return tasks, nil
}
