package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/open-policy-agent/opa/v1/plugins/logs"

	"github.com/clefbench/clefbench/contrib/peers"
)

// Every event comes out again, once, with the fields that went in.
func TestDecisionLogKeepsEveryRow(t *testing.T) {
	rows := peers.NewTraffic(3).Rows(700)
	inputs, err := parse(rows)
	if err != nil {
		t.Fatal(err)
	}
	var got []logs.EventV1
	log := newDecisionLog(defaultLimit, func(chunk []byte) error {
		if len(chunk) > defaultLimit {
			t.Errorf("a chunk of %d bytes", len(chunk))
		}
		r, err := gzip.NewReader(bytes.NewReader(chunk))
		if err != nil {
			return err
		}
		var events []logs.EventV1
		if err := json.NewDecoder(r).Decode(&events); err != nil {
			return err
		}
		got = append(got, events...)
		return nil
	})
	if err := log.add(rows, inputs); err != nil {
		t.Fatal(err)
	}
	if err := log.flush(); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(rows) {
		t.Fatalf("%d events of %d", len(got), len(rows))
	}
	for i := range got {
		want := event(&rows[i], &inputs[i])
		if got[i].DecisionID != want.DecisionID || !got[i].Timestamp.Equal(want.Timestamp) || !reflect.DeepEqual(*got[i].Input, *want.Input) {
			t.Fatalf("event %d: %+v, want %+v", i, got[i], want)
		}
		if got[i].Metrics["latency_ns"] != float64(rows[i].Latency.V) {
			t.Fatalf("event %d: latency %v, want %v", i, got[i].Metrics["latency_ns"], int64(rows[i].Latency.V))
		}
	}
}

func TestOursIsFarCheaper(t *testing.T) {
	r, err := compare(peers.NewTraffic(1).Rows(2048), 1)
	if err != nil {
		t.Fatal(err)
	}
	l, ok := r.Find("OPA v1.22.4 chunk encoder, 32 KiB")
	if !ok || l.Ratio.Median < 10 {
		t.Errorf("ours takes 1/%.1f of OPA's time, want 1/10 or less: far below what is measured", l.Ratio.Median)
	}
}
