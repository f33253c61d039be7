package decision

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

func TestNewIDIsVersion7(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC)
	seen := map[ID]bool{}
	for range 1000 {
		id := NewID(at)
		if seen[id] || id.IsZero() {
			t.Fatalf("id %v came twice or is zero", id)
		}
		seen[id] = true
		if id[6]>>4 != 7 || id[8]>>6 != 2 {
			t.Fatalf("id %v has version %d, variant %d", id, id[6]>>4, id[8]>>6)
		}
		if got, ok := id.Time(); !ok || !got.Equal(at.Truncate(time.Millisecond)) {
			t.Fatalf("id %v has time %v", id, got)
		}
	}
	if a, b := NewID(at).String(), NewID(at.Add(time.Millisecond)).String(); a >= b {
		t.Errorf("ids of later times must sort later: %s, %s", a, b)
	}
}

// The example of RFC 9562, appendix A.6: 2022-02-22 19:22:22.00 UTC.
func TestPublishedVector(t *testing.T) {
	id, err := ParseID("017F22E2-79B0-7CC3-98C4-DC0C0C07398F")
	if err != nil {
		t.Fatal(err)
	}
	at, ok := id.Time()
	if want := time.Date(2022, 2, 22, 19, 22, 22, 0, time.UTC); !ok || !at.Equal(want) {
		t.Errorf("time %v, want %v", at, want)
	}
	if id.String() != "017f22e2-79b0-7cc3-98c4-dc0c0c07398f" {
		t.Errorf("text %s", id)
	}
	if short, err := ParseID("017f22e279b07cc398c4dc0c0c07398f"); err != nil || short != id {
		t.Errorf("%v, %v", short, err)
	}
}

func TestParseIDRefuses(t *testing.T) {
	for _, s := range []string{"", "x", "017f22e2-79b0-7cc3-98c4-dc0c0c07398", "017f22e2-79b0-7cc3-98c4-dc0c0c07398g", "017f22e2x79b0-7cc3-98c4-dc0c0c07398f", "{017f22e2-79b0-7cc3-98c4-dc0c0c0739}"} {
		if id, err := ParseID(s); !errors.Is(err, ErrBadID) || !id.IsZero() {
			t.Errorf("ParseID(%q) = %v, %v", s, id, err)
		}
	}
	if _, ok := (ID{6: 0x40}).Time(); ok {
		t.Error("a version 4 id has no time")
	}
}

func TestIDInJSON(t *testing.T) {
	want := map[string]ID{"id": NewID(time.Unix(1e9, 0))}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]ID{}
	if err := json.Unmarshal(text, &got); err != nil || got["id"] != want["id"] {
		t.Errorf("%s reads as %v, %v", text, got, err)
	}
	if err := json.Unmarshal([]byte(`{"id": "x"}`), &got); !errors.Is(err, ErrBadID) {
		t.Errorf("%v", err)
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
	f.Add("017f22e279b07cc398c4dc0c0c07398f")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err != nil {
			return
		}
		if again, err := ParseID(id.String()); err != nil || again != id {
			t.Fatalf("%q gives %v, which reads as %v, %v", s, id, again, err)
		}
	})
}
