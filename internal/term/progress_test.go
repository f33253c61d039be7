package term

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// screen plays a terminal: what is visible after carriage returns and erasures.
type screen struct {
	mu    sync.Mutex
	raw   bytes.Buffer
	draws int
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draws++
	return s.raw.Write(p)
}

// lines is the text with every "\r\x1b[K" obeyed.
func (s *screen) lines() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, line := range strings.Split(s.raw.String(), "\n") {
		parts := strings.Split(line, "\r\x1b[K")
		out = append(out, parts[len(parts)-1])
	}
	return strings.Join(out, "\n")
}

var terminal = Info{Terminal: true, Width: 80}

func TestProgressOnTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{}
		p := StartProgress(s, ProgressOptions{Label: "replay", Unit: "decisions", Total: 4000, Info: terminal})
		for range 10 { // 1,000 a second
			time.Sleep(100 * time.Millisecond)
			p.Add(100)
		}
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		// The tenth tick came before or after the tenth Add.
		if got := s.lines(); got != "replay 1,000/4,000 decisions 25% 1,000/s ETA 3s" && got != "replay 900/4,000 decisions 22% 900/s ETA 3s" {
			t.Errorf("screen shows %q", got)
		}
		if s.draws != 10 {
			t.Errorf("%d draws in a second, want 10", s.draws)
		}
		p.Stop()
		p.Stop()
		if got := s.lines(); got != "" {
			t.Errorf("after Stop the screen shows %q", got)
		}
	}) // synctest fails when a goroutine is left
}

func TestProgressRateFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{}
		p := StartProgress(s, ProgressOptions{Info: terminal})
		defer p.Stop()
		p.Add(1_000_000)
		time.Sleep(10*time.Second + 50*time.Millisecond)
		synctest.Wait()
		if got := s.lines(); got != "1,000,000 0.0/s 10s" {
			t.Errorf("a job that stalls shows %q", got)
		}
	})
}

func TestProgressSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{}
		p := StartProgress(s, ProgressOptions{Label: "replay", Total: 10})
		p.Add(3)
		time.Sleep(time.Minute)
		p.Stop()
		if s.raw.Len() != 0 {
			t.Errorf("wrote %q where there is no terminal", s.raw.String())
		}
	})
}

func TestProgressLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, logged := &screen{}, &screen{}
		logger := slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		p := StartProgress(s, ProgressOptions{Label: "replay", Total: 100, Logger: logger})
		p.Add(50)
		time.Sleep(25 * time.Second)
		p.Stop()
		want := "level=INFO msg=replay done=50 total=100 per_second=5 eta=10s\n" +
			"level=INFO msg=replay done=50 total=100 per_second=0\n"
		if got := logged.raw.String(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
		if s.raw.Len() != 0 {
			t.Errorf("wrote %q beside the log", s.raw.String())
		}
	})
}

func TestProgressWriteBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{}
		p := StartProgress(s, ProgressOptions{Label: "x", Info: terminal})
		time.Sleep(150 * time.Millisecond)
		synctest.Wait()
		fmt.Fprintln(p, "warning: slow")
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if got := s.lines(); got != "warning: slow\nx 0 0.0/s 0s" {
			t.Errorf("screen shows %q", got)
		}
		p.Stop()
		if got := s.lines(); got != "warning: slow\n" {
			t.Errorf("screen shows %q", got)
		}
	})
}

type brokenPipe struct{}

var errPipe = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errPipe }

// A terminal that went away does not stop the job, but is told to who prints on it.
func TestProgressBrokenPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := StartProgress(brokenPipe{}, ProgressOptions{Info: terminal})
		time.Sleep(time.Second)
		if _, err := fmt.Fprintln(p, "hello"); !errors.Is(err, errPipe) {
			t.Errorf("error %v", err)
		}
		p.Stop()
	})
}

func TestProgressNil(t *testing.T) {
	var p *Progress
	p.Add(1)
	p.Stop()
}

func TestProgressConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := StartProgress(&screen{}, ProgressOptions{Total: 8000, Info: terminal})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 1000 {
					p.Add(1)
					time.Sleep(time.Millisecond)
				}
			})
		}
		wg.Wait()
		p.Stop()
		if p.done != 8000 {
			t.Errorf("%d done", p.done)
		}
	})
}

func TestProgressLine(t *testing.T) {
	start := time.Now()
	at := start.Add(time.Second)
	for _, tt := range []struct {
		done, total int64
		want        string
	}{
		{0, 0, "0 0.0/s 1s"},
		{7, 0, "7 7.0/s 1s"},
		{1234567, 0, "1,234,567 1,234,567/s 1s"},
		{0, 10, "0/10 0% 0.0/s 1s"},
		{10, 10, "10/10 100% 10.0/s ETA 0s"},
		{12, 10, "12/10 100% 12.0/s 1s"},
		{1, 1 << 62, "1/4,611,686,018,427,387,904 0% 1.0/s 1s"},
	} {
		p := &Progress{opts: ProgressOptions{Total: tt.total}, start: start, done: tt.done, past: []sample{{at: start}}}
		if got := p.line(at); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		s     string
		width int
		want  string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"äöü", 2, "äö"}, {"abc", 0, ""}, {"abc", -1, ""}} {
		if got := clip(tt.s, tt.width); got != tt.want {
			t.Errorf("clip(%q, %d) = %q", tt.s, tt.width, got)
		}
	}
	if got := thousands(-1234567); got != "-1,234,567" {
		t.Error(got)
	}
}

func BenchmarkProgressAdd(b *testing.B) {
	p := StartProgress(&screen{}, ProgressOptions{Info: terminal})
	defer p.Stop()
	for b.Loop() {
		p.Add(1)
	}
}
