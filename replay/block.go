package replay

import (
	"iter"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/snapshot"
)

// request is one recorded request: its rows, and what backends may see of them.
type request struct {
	rows []*snapshot.Snapshot
	req  decision.Request
}

func newRequest(rows []*snapshot.Snapshot, p *Plan) *request {
	r := &request{rows: rows}
	snapshot.Request(rows, &r.req)
	r.req.Deadline = p.Timeout
	r.req.Seed = mix(p.Seed, r.req.ID)
	return r
}

// mix derives a request's seed (splitmix64 over the run's seed and the id).
func mix(seed uint64, id decision.ID) uint64 {
	x := seed
	for i := 0; i < len(id); i += 8 {
		for j := range 8 {
			x ^= uint64(id[i+j]) << (8 * j)
		}
		x += 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	return x
}

// requests puts neighbouring rows of one request together. Rows are cloned, since the
// source reuses its row. Rows of a shadow are left out: they are another answer to a
// request that stands there already, and would be asked twice and counted twice.
func requests(rows iter.Seq2[*snapshot.Snapshot, error], p *Plan) iter.Seq2[*request, error] {
	return func(yield func(*request, error) bool) {
		var cur []*snapshot.Snapshot
		for s, err := range rows {
			if err != nil {
				yield(nil, err)
				return
			}
			if _, shadow := s.ShadowOf(); shadow {
				continue
			}
			if len(cur) > 0 && cur[0].RequestID != s.RequestID {
				if !yield(newRequest(cur, p), nil) {
					return
				}
				cur = nil
			}
			cur = append(cur, s.Clone())
		}
		if len(cur) > 0 {
			yield(newRequest(cur, p), nil)
		}
	}
}

// blocks cuts the requests into blocks of n.
func blocks(reqs iter.Seq2[*request, error], n int) iter.Seq2[[]*request, error] {
	return func(yield func([]*request, error) bool) {
		var block []*request
		for r, err := range reqs {
			if err != nil {
				yield(nil, err)
				return
			}
			block = append(block, r)
			if len(block) == n {
				if !yield(block, nil) {
					return
				}
				block = make([]*request, 0, n)
			}
		}
		if len(block) > 0 {
			yield(block, nil)
		}
	}
}

// requestCopy is a request that shares no memory with its original, save the attribute
// schema, which is immutable. Its slices are used again.
type requestCopy struct {
	req        decision.Request
	values     []decision.Value
	features   []float32
	body       []byte
	questions  []decision.Question
	candidates []string
}

func (c *requestCopy) fill(from *decision.Request) *decision.Request {
	c.values = append(c.values[:0], from.Attrs.Values...)
	c.features = append(c.features[:0], from.Features...)
	c.body = append(c.body[:0], from.Body...)
	c.candidates, c.questions = c.candidates[:0], c.questions[:0]
	for _, q := range from.Questions {
		c.candidates = append(c.candidates, q.Candidates...)
	}
	at := 0
	for _, q := range from.Questions {
		end := at + len(q.Candidates)
		q.Candidates = c.candidates[at:end:end]
		c.questions = append(c.questions, q)
		at = end
	}
	c.req = *from
	c.req.Attrs.Values, c.req.Questions = c.values, c.questions
	if from.Features != nil {
		c.req.Features = c.features
	}
	if from.Body != nil {
		c.req.Body = c.body
	}
	return &c.req
}
