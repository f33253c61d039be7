package remote_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clefbench/clefbench/backends/remote"
	"github.com/clefbench/clefbench/decision"
)

// service answers after a time that may change from call to call; it stands in for the
// network, which a fake clock cannot reach.
type service struct {
	delay func(call int64) time.Duration
	fail  error
	calls atomic.Int64
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	n := s.calls.Add(1)
	if s.fail != nil {
		return nil, s.fail
	}
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-time.After(s.delay(n)):
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"action": "allow"}`)), Request: r}, nil
	}
}

// never is far beyond the patience of the client.
const never = 1000 * time.Hour

// run makes n calls one after the other, as a replay does, with 100 ms for each.
func run(t *testing.T, o remote.ClientOptions, n int) (codes map[string]int, took time.Duration) {
	t.Helper()
	o.BaseURL, o.Timeout = "http://service.invalid", 100*time.Millisecond
	c := client(t, o)
	defer c.Close(context.Background())
	codes = map[string]int{}
	start := time.Now()
	for range n {
		d := ask(t, c, request(t, 0.1)).Decisions[0]
		codes[d.Status.String()+" "+d.ErrorCode]++
		time.Sleep(time.Millisecond) // what else a row costs
	}
	return codes, time.Since(start)
}

func TestDeadServiceIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{delay: func(int64) time.Duration { return never }}
		const rows = 20000
		codes, took := run(t, remote.ClientOptions{Transport: s}, rows)
		open := codes["error circuit-open"]
		if open+codes["timeout timeout"] != rows || open < rows-400 {
			t.Errorf("codes %v", codes)
		}
		if took > 60*time.Second {
			t.Errorf("a dead service cost %v", took)
		}
		// All that was not refused is a call, and one more was patient.
		if n := s.calls.Load(); n != int64(rows-open+1) {
			t.Errorf("%d calls for %v", n, codes)
		}
	})
}

func TestBreakerOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{delay: func(int64) time.Duration { return never }}
		if codes, _ := run(t, remote.ClientOptions{Transport: s, NoBreaker: true}, 1000); codes["timeout timeout"] != 1000 || s.calls.Load() != 1000 {
			t.Errorf("codes %v in %d calls", codes, s.calls.Load())
		}
	})
}

// A service that is up scores with the breaker what it scores without.
func TestSlowServicesScoreTheSame(t *testing.T) {
	for name, delay := range map[string]func(int64) time.Duration{
		"always too late":    func(int64) time.Duration { return 150 * time.Millisecond },
		"much too late":      func(int64) time.Duration { return 29 * time.Second },
		"slow to start":      func(n int64) time.Duration { return max(0, 25*time.Second-time.Duration(n)*100*time.Millisecond) },
		"one in a hundred":   func(n int64) time.Duration { return time.Duration(1+n%100) * 95 * time.Millisecond },
		"answered once only": func(n int64) time.Duration { return time.Duration(min(n-1, 1)) * never },
	} {
		synctest.Test(t, func(t *testing.T) {
			with, _ := run(t, remote.ClientOptions{Transport: &service{delay: delay}}, 2000)
			without, _ := run(t, remote.ClientOptions{Transport: &service{delay: delay}, NoBreaker: true}, 2000)
			// The patient call takes one number of the fake service's.
			if d := with["ok "] - without["ok "]; d < -1 || d > 1 || with["error circuit-open"] != 0 {
				t.Errorf("%s: %v with the breaker, %v without", name, with, without)
			}
		})
	}
}

// A dead service that comes up is found by the next probe.
func TestCircuitCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		up := func(int64) time.Duration {
			if time.Since(start) > 50*time.Second {
				return time.Millisecond
			}
			return never
		}
		codes, _ := run(t, remote.ClientOptions{Transport: &service{delay: up}}, 60000)
		if total := codes["ok "] + codes["timeout timeout"] + codes["error circuit-open"]; total != 60000 || codes["error circuit-open"] > 20000 || codes["ok "] < 39000 {
			t.Errorf("codes %v", codes)
		}
	})
}

// Refused connections cost no time, and a request without time left says nothing.
func TestWhatDoesNotOpenTheCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{fail: errors.New("refused")}
		if codes, _ := run(t, remote.ClientOptions{Transport: s}, 5000); codes["error transport"] != 5000 {
			t.Errorf("codes %v", codes)
		}
		s = &service{delay: func(int64) time.Duration { return never }}
		c := client(t, remote.ClientOptions{BaseURL: "http://service.invalid", Transport: s})
		defer c.Close(context.Background())
		req := request(t, 0.1)
		req.Questions, req.Deadline = make([]decision.Question, 100), time.Second
		ask(t, c, req)
		time.Sleep(time.Hour)
		for _, d := range ask(t, c, req).Decisions {
			if d.ErrorCode != remote.CodeTimeout {
				t.Errorf("%+v", d)
			}
		}
	})
}

// Close ends the patient call; synctest would wait for it in vain.
func TestCloseEndsThePatientCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := &service{delay: func(int64) time.Duration { return never }}
		run(t, remote.ClientOptions{Transport: s}, 30)
		synctest.Wait()
		if n := s.calls.Load(); n != 31 || time.Since(start) > 5*time.Second {
			t.Errorf("%d calls in %v", n, time.Since(start))
		}
	})
}
