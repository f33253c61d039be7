package remote

import (
	"bytes"
	"encoding/base64"
	"testing"
)

// Whatever stands around it, no key is left, and a text without one is not touched.
func FuzzMask(f *testing.F) {
	for _, around := range []string{"", `\`, "%", "%2", "&#", `\u00`, "Zm9v", "***", "sk-test-012345678", `"\u0073k-test-0123456789"`, "%2573k-test-0123456789"} {
		f.Add([]byte(around), []byte(around))
	}
	const key = "sk-test-0123456789"
	m := newMask(key)
	f.Fuzz(func(t *testing.T, before, after []byte) {
		if out := m.bytes(bytes.Join([][]byte{before, []byte(key), after}, nil)); bytes.Contains(out, []byte(key)) || !bytes.Contains(out, []byte(masked)) {
			t.Errorf("%q + key + %q gives %q", before, after, out)
		}
		coded := base64.StdEncoding.EncodeToString(bytes.Join([][]byte{before, []byte(key), after}, nil))
		if out := m.text(coded); out != masked {
			t.Errorf("base64 %q gives %q", coded, out)
		}
		if b := bytes.ReplaceAll(before, []byte("0123"), nil); !bytes.ContainsAny(b, `\%&`) && len(b) < 10 && !bytes.Equal(m.bytes(b), b) {
			t.Errorf("%q was changed to %q", b, m.bytes(b))
		}
	})
}
