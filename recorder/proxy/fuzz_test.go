package proxy

import (
	"bytes"
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/clefbench/clefbench/recorder"
)

// Whatever two bodies come by, there is at least one row, every row is valid, and a
// credential of the request's head is in none.
func FuzzRows(f *testing.F) {
	f.Add([]byte(ask1), []byte(answer1), 200, false)
	f.Add([]byte(`{"input":"x","questions":[{"type":"score","levels":[{"label":"a"}]},{"type":"choice","choices":[{"value":""},{"value":true}]}]}`),
		[]byte(`{"answers":[{"type":"score","score":0.2},{"type":"choice","choice":true}]}`), 200, false)
	f.Add([]byte(`{"candidates":["a"],"context":{"x":1}}`), []byte(`{"action":"a","confidence":0.5}`), 200, true)
	f.Add([]byte(`{"state":1,"questions":{"q":{"type":"choice","criteria":{"":null}}}}`), []byte(`{"detail":[{"input":"x","msg":"tok-123456789"}]}`), 422, false)
	rec, err := recorder.New(&memory{}, recorder.Options{})
	if err != nil {
		f.Fatal(err)
	}
	p, err := New(Options{Upstream: "http://127.0.0.1:1", Recorder: rec})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { p.Shutdown(context.Background()); rec.Close(context.Background()) })
	const token = "tok-123456789"
	f.Fuzz(func(t *testing.T, ask, answer []byte, status int, decide bool) {
		a := &attempt{form: formQuestions, start: time.Now(), took: time.Millisecond, status: 100 + (status%500+500)%500,
			header: http.Header{"Authorization": {"Bearer " + token}}, answer: http.Header{},
			body: captured{data: ask, whole: true, total: int64(len(ask))}, reply: captured{data: answer, whole: true, total: int64(len(answer))}}
		if decide {
			a.form = formDecide
		}
		a.reduce()
		c := &call{}
		c.add(a)
		rows := p.rows(c)
		if len(rows) == 0 {
			t.Fatal("no row")
		}
		for i := range rows {
			rows[i].KeepProb = 1
			if err := rows[i].Validate(); err != nil {
				t.Fatalf("row %d: %v: %+v", i, err, rows[i])
			}
		}
		if bytes.Contains(rows[0].Input, []byte(token)) || bytes.Contains(rows[0].Output, []byte(token)) || bytes.Contains([]byte(rows[0].Error), []byte(token)) {
			t.Fatalf("%+v", rows[0])
		}
	})
}
