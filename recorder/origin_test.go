package recorder

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/clefbench/clefbench/decision"
)

// told is a sink that is told its origin.
type told struct {
	memory
	said []string
}

func (s *told) SetOrigin(key, redaction, list string) { s.said = append(s.said, key, redaction, list) }

func TestSinkIsToldTheOrigin(t *testing.T) {
	other := []byte("another key of 16 bytes or more")
	id := sum(key, "clefbench entity key id")
	for _, c := range []struct {
		opts           Options
		key, redaction string
	}{
		{Options{}, "", RedactionSecrets}, {Options{EntityKey: key}, hex.EncodeToString(id[:4]), RedactionSecrets},
		{Options{EntityKey: key, EntityKeyID: "2026-07", Capture: Capture{Input: true, RawBodies: true}}, "2026-07", RedactionRawBodies},
	} {
		sink := &told{}
		r := newRecorder(t, sink, c.opts)
		closeNow(t, r)
		digest := c.opts.Capture.Digest()
		if len(sink.said) != 3 || sink.said[0] != c.key || sink.said[1] != c.redaction || sink.said[2] != hex.EncodeToString(digest[:]) {
			t.Errorf("told %q", sink.said)
		}
	}
	if KeyID(key) == KeyID(other) || KeyID(nil) != "" {
		t.Error("keys have one id")
	}
	for _, opts := range []Options{{EntityKeyID: "k"}, {EntityKey: key, EntityKeyID: "a,b"}, {EntityKey: key, EntityKeyID: "a b"}, {EntityKey: key, EntityKeyID: strings.Repeat("k", 65)}} {
		if r, err := New(&memory{}, opts); !errors.Is(err, ErrOptions) {
			r.Close(context.Background())
			t.Errorf("id %q: %v", opts.EntityKeyID, err)
		}
	}
}

func TestRedactor(t *testing.T) {
	schema, _ := decision.NewSchema(decision.Field{Name: "headers.cookie", Type: decision.String}, decision.Field{Name: "headers.referer", Type: decision.String},
		decision.Field{Name: "note", Type: decision.String}, decision.Field{Name: "n", Type: decision.Int})
	s := row(1)
	s.Attrs = decision.Attrs{Schema: schema, Values: []decision.Value{decision.StringValue("a=b"), decision.StringValue("https://h/x?token=t"), decision.StringValue("to a@b.co"), decision.IntValue(1)}}
	s.Input, s.InputLen, s.Output = []byte(`{"password":"x"}`), decision.Some(int64(16)), []byte(`{"broken`)
	s.Params, s.Error = `{"to":"a@b.co"}`, "token=t0ken"
	var r Redactor
	for range 2 { // again changes nothing
		if err := r.Redact(s); err != nil {
			t.Fatal(err)
		}
		const want = "headers.cookie:drop headers.referer:query note:email input:/password:credential output:unparsable params:/to:email"
		if got := strings.Join(s.Redacted, " "); got != want {
			t.Errorf("notes %s", got)
		}
	}
	if !s.Attrs.At(0).IsNull() || s.Attrs.At(1).Str() != "https://h/x" || s.Attrs.At(2).Str() != "to [redacted:email]" || s.Attrs.At(3).Int() != 1 ||
		string(s.Input) != `{"password":"[redacted:credential]"}` || s.Output != nil || s.Params != `{"to":"[redacted:email]"}` || s.Error != "token=***" {
		t.Errorf("row %+v", s)
	}
}
