package proxy

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
)

// What is no decision is none that is lost, whether recording is on or off.
func TestSwitchedOffLosesDecisionsOnly(t *testing.T) {
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, answer1) }))
	s.rec.SetRecording(false)
	for range 10 {
		post(t, s.url+"/v1/chat/completions", `{"messages":[]}`)
	}
	post(t, s.url+"/v1/systemone", ask1)
	s.rows()
	l := s.rec.Stats().Ledger
	if st := s.proxy.Stats(); st.Passed != 10 || l.Offered != 1 || l.Dropped[recorder.DropSwitchedOff] != 1 {
		t.Errorf("passed %d, %+v", st.Passed, l)
	}
}

// SetRecording promises that what is under way is recorded to its end: an attempt that
// waits for its retry, and a request whose answer comes later.
func TestSwitchedOffEndsWhatIsUnderWay(t *testing.T) {
	arrived, release := make(chan bool), make(chan bool)
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/failing/systemone" {
			w.WriteHeader(503)
			return
		}
		arrived <- true
		<-release
		io.WriteString(w, answer1)
	}), func(o *Options, _ *recorder.Options) { o.RetryWindow = time.Hour })
	post(t, s.url+"/failing/systemone", ask1)
	done := make(chan bool)
	go func() { post(t, s.url+"/v1/systemone", ask1); done <- true }()
	<-arrived
	for end := time.Now().Add(20 * time.Second); s.proxy.Stats().Attempts == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the failed attempt is never read")
		}
	}
	s.rec.SetRecording(false)
	release <- true
	<-done
	rows := s.rows()
	if l := s.rec.Stats().Ledger; len(rows) != 2 || l.Offered != 2 || len(l.Dropped) != 0 {
		t.Fatalf("%d rows, %+v", len(rows), l)
	}
	if rows[0].Status != decision.OK || rows[1].ErrorCode != "http-503" {
		t.Errorf("%+v\n%+v", rows[0], rows[1])
	}
}

// A request that is under way when recording ends, and cannot be read, is lost for its own
// reason.
func TestSwitchedOffKeepsReasons(t *testing.T) {
	s := start(t, serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, answer1) }))
	s.rec.SetRecording(false)
	s.proxy.lose(&attempt{form: formQuestions}, LostTooLong)
	s.rows()
	if l := s.rec.Stats().Ledger; l.Dropped[LostTooLong] != 1 || l.Dropped[recorder.DropSwitchedOff] != 0 {
		t.Errorf("%+v", l)
	}
}
