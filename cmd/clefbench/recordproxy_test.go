package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/clefbench/clefbench/datasets"
	"github.com/clefbench/clefbench/snapshot"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

const proxyAsk = `{"state":%d,"questions":{"q":{"type":"choice","criteria":{"a":null,"b":null}}},"model":"jev-latest"}`

// decider is a stand-in for a decision service: it says the number of the request.
func decider(t *testing.T) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Typesafe-Request-Id", r.Header.Get("X-Number"))
		switch {
		case bytes.Contains(b, []byte(`"E422"`)):
			w.WriteHeader(422)
			fmt.Fprintf(w, `{"detail":[{"loc":["body"],"msg":"bad","type":"t","input":{"echo":"planted-echo","auth":%q}}]}`, r.Header.Get("Authorization"))
		default:
			io.WriteString(w, `{"model":"jev-1.13.0","answers":{"q":{"type":"choice","choice":"a","confidence":0.9,"probabilities":{"a":0.95,"b":0.05}}}}`)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// proxyProcess is a running clefbench record --listen.
type proxyProcess struct {
	cmd    *exec.Cmd
	url    string
	stderr *bufio.Scanner
}

func startProxy(t *testing.T, dir, upstream string, args ...string) *proxyProcess {
	t.Helper()
	p := &proxyProcess{cmd: exec.Command("clefbench", append([]string{"record", "-o", dir, "--listen", "127.0.0.1:0", "--upstream", upstream, "--ack",
		"--flush-interval", "2ms", "--fsync", "batch"}, args...)...)}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill(); p.cmd.Wait() })
	p.stderr = bufio.NewScanner(stderr)
	if !p.stderr.Scan() {
		t.Fatal("the proxy says nothing")
	}
	line := p.stderr.Text()
	url, ok := strings.CutPrefix(line, "recording ")
	if p.url, _, _ = strings.Cut(url, " -> "); !ok || !strings.HasSuffix(line, " -> "+upstream) {
		t.Fatalf("unexpected on stderr: %s", line)
	}
	return p
}

// acks reads what the proxy prints until it ends, and returns the last watermark.
func (p *proxyProcess) acks(t *testing.T, first func()) (acked int, rest []string) {
	t.Helper()
	for p.stderr.Scan() {
		text, ok := strings.CutPrefix(p.stderr.Text(), "acked ")
		if !ok {
			rest = append(rest, p.stderr.Text())
			continue
		}
		if acked == 0 {
			first()
		}
		var err error
		if acked, err = strconv.Atoi(text); err != nil {
			t.Error(err)
		}
	}
	p.cmd.Wait()
	return acked, rest
}

// ask sends numbered requests one after the other until one fails.
func askUntilDead(url string) {
	client := &http.Client{Transport: &http.Transport{}}
	for n := 0; ; n++ {
		req, _ := http.NewRequest("POST", url+"/v1/systemone", strings.NewReader(fmt.Sprintf(proxyAsk, n)))
		req.Header.Set("X-Number", strconv.Itoa(n))
		resp, err := client.Do(req)
		if err != nil {
			return
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil {
			return
		}
	}
}

// The proxy is killed at a random moment, 50 times: everything below the last watermark
// that it printed is there after recovery, row for row.
func TestKilledProxyKeepsWhatWasAcknowledged(t *testing.T) {
	upstream := decider(t)
	kills := 50
	if testing.Short() {
		kills = 3
	}
	total := 0
	for i := range kills {
		dir := filepath.Join(t.TempDir(), "ds")
		p := startProxy(t, dir, upstream)
		var client sync.WaitGroup
		client.Go(func() { askUntilDead(p.url) })
		acked, rest := p.acks(t, func() {
			time.AfterFunc(time.Duration(i%7)*5*time.Millisecond, func() { p.cmd.Process.Kill() })
		})
		client.Wait()
		if acked == 0 || len(rest) > 0 {
			t.Fatalf("kill %d: acknowledged %d rows; %q", i, acked, rest)
		}
		if got := countNumbered(t, dir); got < acked {
			t.Errorf("kill %d: acknowledged %d rows, recovered %d", i, acked, got)
		}
		total += acked
	}
	t.Logf("%d kills, %d rows acknowledged in all, none lost", kills, total)
}

// countNumbered checks that row n is the n-th request that was sent, for all rows there are.
func countNumbered(t *testing.T, dir string) int {
	t.Helper()
	n := 0
	eachRow(t, dir, func(s *snapshot.Snapshot) {
		if want := fmt.Sprintf(proxyAsk, n); s.SourceID != strconv.Itoa(n) || string(s.Input) != want || s.Action != "a" {
			t.Fatalf("row %d holds %s %s %s", n, s.SourceID, s.Action, s.Input)
		}
		n++
	})
	return n
}

func eachRow(t *testing.T, dir string, f func(*snapshot.Snapshot)) {
	t.Helper()
	if _, err := arrowfile.RecoverDir(dir); err != nil {
		t.Fatal(err)
	}
	ds, err := datasets.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	for s, err := range ds.Snapshots(datasets.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		f(s)
	}
}

// A signal ends a recording with everything sealed; its ledger is the last line.
func TestProxySealsOnSignal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ds")
	p := startProxy(t, dir, decider(t), "--capture", "headers.x-tenant", "--capture", "path", "--scenario", "tool-gate", "--backend", "jev")
	for i, body := range []string{fmt.Sprintf(proxyAsk, 0), strings.Replace(fmt.Sprintf(proxyAsk, 1), "1", `"E422"`, 1), ""} {
		method, path := "POST", "/v1/systemone"
		if i == 2 {
			method, path = "GET", "/v1/models"
		}
		req, _ := http.NewRequest(method, p.url+path, strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer planted-token")
		req.Header.Set("X-Tenant", "t7")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	acked, rest := p.acks(t, func() {})
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if acked != 2 || len(rest) != 1 || rest[0] != "recorded 2 of 2 decisions in 2 requests; 1 other requests passed" {
		t.Errorf("acked %d, %q", acked, rest)
	}
	var got []string
	eachRow(t, dir, func(s *snapshot.Snapshot) {
		got = append(got, fmt.Sprintf("%s %s %s %v %s %s", s.Scenario, s.Backend, s.Status, s.Attrs.Values, s.ErrorCode, s.Output))
	})
	all := strings.Join(got, "\n")
	if len(got) != 2 || !strings.Contains(all, "tool-gate jev ok [t7 /v1/systemone]") || !strings.Contains(all, `http-422 {"detail":[{"loc":["body"],"msg":"bad","type":"t","input":null}]}`) {
		t.Error(all)
	}
	grepFiles(t, dir, "planted-token", "planted-echo")
}

// grepFiles looks for secrets in what was written, file by file and decoded.
func grepFiles(t *testing.T, dir string, secrets ...string) {
	t.Helper()
	out, err := exec.Command("clefbench", "datasets", "export", dir, "--to", "jsonl", "-o", "-").Output()
	if err != nil || !bytes.Contains(out, []byte("jev-1.13.0")) {
		t.Fatalf("export: %v %s", err, out)
	}
	for _, s := range secrets {
		if bytes.Contains(out, []byte(s)) {
			t.Errorf("%s was written: %s", s, out)
		}
		if err := exec.Command("grep", "-rq", s, dir).Run(); err == nil {
			t.Errorf("%s stands in a file", s)
		}
	}
}

// A second signal does not wait for a request that never ends.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	arrived := make(chan bool, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		arrived <- true
		<-r.Context().Done()
	}))
	defer srv.Close()
	dir := filepath.Join(t.TempDir(), "ds")
	p := startProxy(t, dir, srv.URL, "--grace", "1h")
	go http.Post(p.url+"/v1/systemone", "application/json", strings.NewReader(fmt.Sprintf(proxyAsk, 0)))
	<-arrived
	ended := make(chan error, 1)
	p.cmd.Process.Signal(syscall.SIGTERM)
	go func() { p.acks(t, func() {}); ended <- nil }()
	select {
	case <-ended:
		t.Fatal("the first signal did not wait for the request")
	case <-time.After(100 * time.Millisecond):
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the second signal waits")
	}
}

func TestProxyFlagsAreChecked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ds")
	for name, args := range map[string][]string{
		"no upstream":       {"-o", dir, "--listen", "127.0.0.1:0"},
		"no listen":         {"-o", dir, "--upstream", "http://127.0.0.1:1"},
		"no output":         {"--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1"},
		"all interfaces":    {"-o", dir, "--listen", ":0", "--upstream", "http://127.0.0.1:1"},
		"userinfo":          {"-o", dir, "--listen", "127.0.0.1:0", "--upstream", "http://me:hunter22@127.0.0.1:1"},
		"dialect":           {"-o", dir, "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1", "--dialect", "mcp"},
		"captured password": {"-o", dir, "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1", "--capture", "headers.authorization"},
		"capture type":      {"-o", dir, "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1", "--capture", "path:text"},
		"bodies":            {"-o", dir, "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1", "--bodies", "all"},
		"batch":             {"-o", dir, "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1", "--batch", "0"},
	} {
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		cmd := exec.CommandContext(ctx, "clefbench", append([]string{"record"}, args...)...)
		cmd.Stderr = &out
		err := cmd.Run()
		cancel()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitUsage || strings.Contains(out.String(), "hunter22") {
			t.Errorf("%s: %v %s", name, err, out.String())
		}
		if _, err := os.Stat(dir); err == nil && name != "captured password" {
			t.Errorf("%s left a directory behind", name)
		}
		os.RemoveAll(dir)
	}
}
