package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/s3blob"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot/arrowfile"
)

// testBucket is a bucket, read by gocloud.dev's own drivers: what they see is there.
type testBucket struct {
	url    string
	bucket *blob.Bucket
	s3     bool
}

func fileBucket(t *testing.T) *testBucket {
	dir := t.TempDir()
	b, err := fileblob.OpenBucket(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return &testBucket{url: "file://" + dir, bucket: b}
}

// s3Bucket is a fresh prefix on the server that .ci/s3.sh starts.
func s3Bucket(t *testing.T) *testBucket {
	endpoint := os.Getenv("CLEFBENCH_S3_ENDPOINT")
	if endpoint == "" {
		t.Skip("CLEFBENCH_S3_ENDPOINT is not set; .ci/s3.sh starts a server and sets it")
	}
	name, prefix := os.Getenv("CLEFBENCH_S3_BUCKET"), fmt.Sprintf("test-%d", time.Now().UnixNano())
	u := &url.URL{Scheme: "s3", Host: name, RawQuery: url.Values{"endpoint": {endpoint}, "region": {"us-east-1"}, "use_path_style": {"true"}}.Encode()}
	b, err := new(s3blob.URLOpener).OpenBucketURL(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	b = blob.PrefixedBucket(b, prefix+"/")
	t.Cleanup(func() { b.Close() })
	u.Path = "/" + prefix
	return &testBucket{url: u.String(), bucket: b, s3: true}
}

// objects returns the segments in the bucket by key.
func (b *testBucket) objects(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	list := b.bucket.List(&blob.ListOptions{Prefix: "full/"})
	for {
		o, err := list.Next(context.Background())
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if out[o.Key], err = b.bucket.ReadAll(context.Background(), o.Key); err != nil {
			t.Fatal(err)
		}
	}
}

// checked verifies every object of the bucket, and returns how often each row of each
// service is in it, by source id. A decision id belongs to one source id.
func (b *testBucket) checked(t *testing.T) map[string]map[int]int {
	t.Helper()
	dir := t.TempDir()
	rows, ids := map[string]map[int]int{}, map[decision.ID]string{}
	for key, data := range b.objects(t) {
		file := filepath.Join(dir, path.Base(key))
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		report, err := arrowfile.Verify(file)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		b.checkMetadata(t, key, data, report.Rows)
		service := path.Base(path.Dir(key))
		if rows[service] == nil {
			rows[service] = map[int]int{}
		}
		f, err := arrowfile.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for s, err := range f.Snapshots("id", "source_id") {
			if err != nil {
				t.Fatal(err)
			}
			n, err := strconv.Atoi(s.SourceID)
			if err != nil {
				t.Fatal(err)
			}
			if was, seen := ids[s.ID]; seen && was != service+s.SourceID {
				t.Fatalf("%s: id %v is row %s and row %s", key, s.ID, was, s.SourceID)
			}
			ids[s.ID] = service + s.SourceID
			rows[service][n]++
		}
	}
	return rows
}

func (b *testBucket) checkMetadata(t *testing.T, key string, data []byte, rows int64) {
	t.Helper()
	if !b.s3 {
		return // a directory keeps none
	}
	a, err := b.bucket.Attributes(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if a.Metadata["sha256"] != hex.EncodeToString(sum[:]) || a.Metadata["rows"] != strconv.FormatInt(rows, 10) {
		t.Errorf("%s: metadata %v, %d rows", key, a.Metadata, rows)
	}
}

// producer is one host: it records its rows with clefbench record --upload, and sends
// what was not acknowledged again after each kill, under the same ids.
type producer struct {
	t        *testing.T
	n        int
	dir, url string
	// next is the row to go on with, acked those that were acknowledged. After a kill next
	// may be less: the producer did not hear of the last acknowledgement.
	next, acked int
	kills       int
	// pad makes rows long.
	pad int
}

func (p *producer) line(i int) string {
	return fmt.Sprintf(`{"id":"0190a000-0000-7000-8000-%04x%08x","ts":"2026-03-04T05:06:07Z","scenario":"edge","action":"allow","source_id":"%d","attrs":{"path":"/%x"},"candidates":["allow","block"]}`+"\n",
		p.n, i, i, noise(p.pad+i%7))
}

// noise is text that does not compress well.
func noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// run starts the recorder. It sends up to rows, and kills the process some time after the
// first acknowledgement, unless after is negative.
func (p *producer) run(rows int, after time.Duration) {
	cmd := exec.Command("clefbench", "record", "-o", p.dir, "--ack", "--batch", "50", "--flush-interval", "20ms", "--fsync", "never",
		"--segment-size", "8KiB", "--upload", p.url, "--service", fmt.Sprintf("host-%d", p.n))
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Error(err)
		return
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		p.t.Error(err)
		return
	}
	if err := cmd.Start(); err != nil {
		p.t.Error(err)
		return
	}
	start := p.next
	go func() {
		defer in.Close()
		for i := start; i < start+rows; i++ {
			if _, err := io.WriteString(in, p.line(i)); err != nil {
				return // killed
			}
			if i%20 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}()
	var said []string
	heard := 0
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said = append(said, lines.Text())
		text, ok := strings.CutPrefix(lines.Text(), "acked ")
		if !ok {
			continue
		}
		acked, err := strconv.Atoi(text)
		if err != nil {
			p.t.Error(err)
		}
		if heard == 0 && after >= 0 {
			time.AfterFunc(after, func() { cmd.Process.Kill() })
		}
		heard++
		if after < 0 || rand.N(2) == 0 || heard == 1 {
			p.next = start + acked
		}
		p.acked = max(p.acked, start+acked)
	}
	err = cmd.Wait()
	if heard == 0 {
		p.t.Errorf("host %d: nothing was acknowledged: %s", p.n, strings.Join(said, "\n"))
	}
	if after < 0 && err != nil {
		p.t.Errorf("host %d: the last run: %v\n%s", p.n, err, strings.Join(said, "\n"))
	}
	if after >= 0 {
		p.kills++
	}
}

// Four hosts record and upload into one bucket and are killed at random moments: whatever
// was acknowledged is in the bucket at the end, each object is whole, and what was sent
// twice is told by its id.
func testKilledHosts(t *testing.T, b *testBucket, kills int) {
	var wg sync.WaitGroup
	hosts := make([]*producer, 4)
	for n := range hosts {
		p := &producer{t: t, n: n, dir: t.TempDir(), url: b.url}
		hosts[n] = p
		wg.Go(func() {
			for range kills {
				p.run(1<<30, rand.N(300*time.Millisecond))
			}
			p.run(500, -1)
		})
	}
	wg.Wait()
	rows := b.checked(t)
	total, lost, twice, killed := 0, 0, 0, 0
	for _, p := range hosts {
		have := rows[fmt.Sprintf("host-%d", p.n)]
		for i := range p.acked {
			if have[i] == 0 {
				lost++
			}
			twice += max(0, have[i]-1)
		}
		total, killed = total+p.acked, killed+p.kills
		if left, _ := filepath.Glob(filepath.Join(p.dir, "*.arrow")); len(left) > 0 {
			t.Errorf("host %d: %d segments were not uploaded", p.n, len(left))
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d acknowledged rows are lost", lost, total)
	}
	t.Logf("4 hosts, %d kills, %d objects, %d rows acknowledged, %d lost, %d duplicates identified by id",
		killed, len(b.objects(t)), total, lost, twice)
}

func kills(n int) int {
	if testing.Short() {
		return max(1, n/5)
	}
	return n
}

func TestKilledHostsDirectory(t *testing.T) { testKilledHosts(t, fileBucket(t), kills(13)) }

func TestKilledHostsS3(t *testing.T) { testKilledHosts(t, s3Bucket(t), kills(13)) }

// Uploaders that share a spool are killed at random moments: at each, every segment is in
// the spool or whole in the bucket, and at the end all are in the bucket.
func testKilledUploaders(t *testing.T, b *testBucket, segments int) {
	dir := t.TempDir()
	p := &producer{t: t, dir: dir, pad: 8 << 10}
	segmentsOf(t, p, segments)
	want := segmentFiles(t, dir)
	killed := 0
	for round := 0; len(segmentFiles(t, dir)) > 0; round++ {
		if round == 500 {
			t.Fatalf("%d segments are left after %d kills", len(segmentFiles(t, dir)), killed)
		}
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				cmd := exec.Command("clefbench", "upload", dir, "--to", b.url, "--service", "host-0")
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				// Longer with time, so that a slow machine gets there, too.
				time.Sleep(time.Duration(20+3*round)*time.Millisecond + rand.N(40*time.Millisecond))
				cmd.Process.Kill()
				cmd.Wait()
			})
		}
		wg.Wait()
		killed += 2
		b.holds(t, want, segmentFiles(t, dir))
	}
	t.Logf("%d segments, %d kills of 2 uploaders on one spool: each is whole in the bucket", len(want), killed)
}

// holds checks that each segment stands in the spool or in the bucket, unchanged.
func (b *testBucket) holds(t *testing.T, want, spool map[string][]byte) {
	t.Helper()
	stored := map[string][]byte{}
	for key, data := range b.objects(t) {
		stored[path.Base(key)] = data
	}
	for name, data := range want {
		object, there := stored[name]
		if there && !bytes.Equal(object, data) {
			t.Fatalf("%s is not whole in the bucket: %d of %d bytes", name, len(object), len(data))
		}
		if !there && !bytes.Equal(spool[name], data) {
			t.Fatalf("%s is neither in the spool nor in the bucket", name)
		}
	}
	if extra := len(slices.Collect(maps.Keys(stored))); extra > len(want) {
		t.Fatalf("%d objects for %d segments", extra, len(want))
	}
}

// segmentsOf records into the producer's directory, without uploading.
func segmentsOf(t *testing.T, p *producer, segments int) {
	t.Helper()
	for range segments {
		cmd := exec.Command("clefbench", "record", "-q", "-o", p.dir)
		var in strings.Builder
		for range 100 {
			in.WriteString(p.line(p.next))
			p.next++
		}
		cmd.Stdin = strings.NewReader(in.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

func segmentFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.arrow"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(name)] = data
	}
	return out
}

func TestKilledUploadersDirectory(t *testing.T) { testKilledUploaders(t, fileBucket(t), kills(40)) }

func TestKilledUploadersS3(t *testing.T) { testKilledUploaders(t, s3Bucket(t), kills(40)) }
