package main

import (
	"strings"
	"testing"
	"time"
)

func TestParseAge(t *testing.T) {
	const day = 24 * time.Hour
	for in, want := range map[string]time.Duration{"7d": 7 * day, "0d": 0, "36h": 36 * time.Hour, "1d12h": 36 * time.Hour, "1d30m": day + 30*time.Minute, "0s": 0} {
		if got, err := parseAge(in); err != nil || got != want {
			t.Errorf("%s is %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "d", "7", "week", "-1d", "1.5d", "-2h", "1d-30h", "99999999d", "7dd", "1h1d"} {
		if got, err := parseAge(in); err == nil {
			t.Errorf("%q is %v", in, got)
		}
	}
}

// The record says who, with what and when, and no more of the machine than that.
func TestRetainOptions(t *testing.T) {
	clock := time.Unix(1700000000, 0)
	f := retainFlags{out: "x", after: "7d", format: "text", by: "ops"}
	f.policy.Keep = 0.5
	o, err := f.options(clock)
	if err != nil || o.By != "ops" || !o.Now.Equal(clock) || !o.Ran.Equal(clock) || o.Policy.After != 7*24*time.Hour || !strings.HasPrefix(o.Tool, "clefbench ") {
		t.Errorf("%v: %+v", err, o)
	}
	f.by, f.now = "", "2026-03-01T00:00:00Z"
	if o, err = f.options(clock); err != nil || o.By == "" || o.Now.Year() != 2026 || !o.Ran.Equal(clock) {
		t.Errorf("%v: %+v", err, o)
	}
}
