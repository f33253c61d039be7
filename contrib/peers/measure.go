package peers

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Case is one way to do the work that a group compares.
type Case struct {
	Name string
	// Rows is how many rows one run handles.
	Rows int
	// Run does the work once and returns the bytes that it wrote.
	Run func() (bytes int64, err error)
}

// Result is what the rounds of a case gave.
type Result struct {
	Name string
	// Bytes and NS are bytes and nanoseconds of processor time for one row; NS has one value
	// a round.
	Bytes float64
	NS    []float64
}

// Ratio is the median of per-round ratios with the quartiles around it.
type Ratio struct{ Median, Low, High float64 }

// Measure runs the cases turn about: one warm-up, then the rounds. Each run starts after a
// finished garbage collection, so that no case pays for the garbage of the one before; the
// collections that it causes itself are part of its time.
func Measure(rounds int, cases []Case) ([]Result, error) {
	results := make([]Result, len(cases))
	for round := range rounds + 1 {
		for i, c := range cases {
			runtime.GC()
			start := processTime()
			n, err := c.Run()
			spent := processTime() - start
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Name, err)
			}
			results[i].Name, results[i].Bytes = c.Name, float64(n)/float64(c.Rows)
			if round > 0 {
				results[i].NS = append(results[i].NS, float64(spent)/float64(c.Rows))
			}
		}
	}
	return results, nil
}

// RatioOf is how many times a takes what b takes, round by round.
func RatioOf(a, b []float64) Ratio {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return Ratio{Median: quantile(ratios, 0.5), Low: quantile(ratios, 0.25), High: quantile(ratios, 0.75)}
}

// quantile interpolates between the two nearest values; it sorts a copy.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	at := q * float64(len(v)-1)
	i := int(at)
	if i+1 == len(v) {
		return v[i]
	}
	return v[i] + (at-float64(i))*(v[i+1]-v[i])
}

// processTime is the processor time of the whole process, user and system.
func processTime() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// threadTime is the processor time of the calling thread.
func threadTime() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic(err) // both clocks exist wherever this package builds
	}
	return time.Duration(ts.Nano())
}
