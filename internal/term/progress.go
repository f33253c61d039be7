package term

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// drawEvery is how often a terminal sees a new line: 10 Hz.
	drawEvery = 100 * time.Millisecond
	// logEvery is how often a log sees one.
	logEvery = 10 * time.Second
	// rateOver is the time that the shown rate looks back, so that it follows a change
	// but does not flicker.
	rateOver = 3 * time.Second
)

// ProgressOptions say where progress goes. Without a terminal and without a logger it is
// silent.
type ProgressOptions struct {
	// Label says what is going on: "replay".
	Label string
	// Unit is what is counted, in the plural: "decisions".
	Unit string
	// Total is how many there will be; 0 means unknown, and there is no ETA then.
	Total int64
	// Info is what the writer is connected to ([Detect]).
	Info Info
	// Logger gets a line every ten seconds where there is no terminal; may be nil.
	Logger *slog.Logger
}

// Progress shows how far a job is: on a terminal as one line that is drawn over ten times
// a second and cleared at the end, else as log lines. All methods may be called from
// several goroutines; Add and Stop also on a nil *Progress, which shows nothing.
type Progress struct {
	w    io.Writer
	opts ProgressOptions
	// mu guards what follows, and the writer.
	mu    sync.Mutex
	done  int64
	drawn bool
	start time.Time
	past  []sample
	stop  chan struct{}
	ended sync.WaitGroup
	once  sync.Once
}

// sample is the count at a time, for the rate.
type sample struct {
	at   time.Time
	done int64
}

// StartProgress begins to show progress on a writer. The caller must call Stop.
func StartProgress(w io.Writer, o ProgressOptions) *Progress {
	p := &Progress{w: w, opts: o, start: time.Now(), stop: make(chan struct{})}
	p.past = []sample{{at: p.start}}
	every, show := drawEvery, p.draw
	if !o.Info.Terminal {
		if o.Logger == nil {
			return p
		}
		every, show = logEvery, p.log
	}
	p.ended.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				show(now)
			case <-p.stop:
				return
			}
		}
	})
	return p
}

// Add counts n more as done.
func (p *Progress) Add(n int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.done += n
	p.mu.Unlock()
}

// Stop ends the showing and clears the line. It may be called again.
func (p *Progress) Stop() {
	if p == nil {
		return
	}
	p.once.Do(func() { close(p.stop) })
	p.ended.Wait()
	p.mu.Lock()
	p.clear()
	p.mu.Unlock()
}

// Write prints something else, a warning say, without a broken progress line: the line is
// cleared first, and drawn again later.
func (p *Progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	n, err := p.w.Write(b)
	if err != nil {
		return n, fmt.Errorf("write beside progress: %w", err)
	}
	return n, nil
}

// clear removes the line. A terminal that fails is no reason to fail the job.
func (p *Progress) clear() {
	if p.drawn {
		_, _ = io.WriteString(p.w, "\r\x1b[K")
		p.drawn = false
	}
}

func (p *Progress) draw(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := clip(p.line(now), p.opts.Info.Width-1)
	_, err := io.WriteString(p.w, "\r\x1b[K"+line)
	p.drawn = err == nil
}

func (p *Progress) log(now time.Time) {
	p.mu.Lock()
	rate := p.rate(now)
	args := []any{"done", p.done}
	if p.opts.Total > 0 {
		args = append(args, "total", p.opts.Total)
	}
	args = append(args, "per_second", int64(rate+0.5))
	if eta, ok := p.eta(rate); ok {
		args = append(args, "eta", eta.Round(time.Second).String())
	}
	p.mu.Unlock()
	p.opts.Logger.Info(p.opts.Label, args...)
}

// line is "replay 1,200/4,000 decisions 30% 812/s ETA 4s".
func (p *Progress) line(now time.Time) string {
	rate := p.rate(now)
	var b strings.Builder
	if p.opts.Label != "" {
		b.WriteString(p.opts.Label + " ")
	}
	b.WriteString(thousands(p.done))
	if p.opts.Total > 0 {
		b.WriteString("/" + thousands(p.opts.Total))
	}
	if p.opts.Unit != "" {
		b.WriteString(" " + p.opts.Unit)
	}
	if p.opts.Total > 0 {
		fmt.Fprintf(&b, " %.0f%%", math.Floor(min(100, 100*float64(p.done)/float64(p.opts.Total))))
	}
	fmt.Fprintf(&b, " %s/s", perSecond(rate))
	if eta, ok := p.eta(rate); ok {
		b.WriteString(" ETA " + eta.Round(time.Second).String())
	} else {
		b.WriteString(" " + now.Sub(p.start).Round(time.Second).String())
	}
	return b.String()
}

// rate is the number per second over the last seconds.
func (p *Progress) rate(now time.Time) float64 {
	p.past = append(p.past, sample{now, p.done})
	for len(p.past) > 2 && now.Sub(p.past[1].at) >= rateOver {
		p.past = p.past[1:]
	}
	first := p.past[0]
	if d := now.Sub(first.at).Seconds(); d > 0 {
		return float64(p.done-first.done) / d
	}
	return 0
}

// eta is the time that the rest will take; false when nobody knows.
func (p *Progress) eta(rate float64) (time.Duration, bool) {
	left := p.opts.Total - p.done
	if p.opts.Total <= 0 || left < 0 || rate <= 0 {
		return 0, false
	}
	seconds := float64(left) / rate
	if seconds > 1e6 {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// perSecond has a decimal where the whole number would say too little.
func perSecond(rate float64) string {
	if rate < 100 {
		return strconv.FormatFloat(rate, 'f', 1, 64)
	}
	return thousands(int64(rate + 0.5))
}

// thousands puts commas between the thousands of a count.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// clip cuts a line to a width: one that wraps could not be drawn over.
func clip(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(width, 0)])
}
