package recorder

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// originSetter is a sink that keeps with its rows under which rules they were recorded.
// New calls it once, before the first row.
type originSetter interface {
	SetOrigin(entityKeyID, redaction, captureList string)
}

// The ways in which secrets in bodies are treated, as segments say it.
const (
	// RedactionSecrets: what looks like a secret is replaced.
	RedactionSecrets = "secrets"
	// RedactionRawBodies: bodies are stored as they came.
	RedactionRawBodies = "raw-bodies"
)

func (c *Capture) redaction() string {
	if c.RawBodies {
		return RedactionRawBodies
	}
	return RedactionSecrets
}

func (c *Capture) hexDigest() string {
	d := c.Digest()
	return hex.EncodeToString(d[:])
}

// KeyID is the id of an entity key that has no other name: eight hexadecimal digits that
// follow from the key and do not tell it. It is empty without a key.
func KeyID(key []byte) string {
	m := newMAC(key)
	if m == nil {
		return ""
	}
	sum := m.of([]byte("clefbench entity key id"))
	return hex.EncodeToString(sum[:4])
}

// checkKeyID: a list of ids is joined by commas.
func checkKeyID(id string, key bool) error {
	switch bad := strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' }); {
	case bad || len(id) > 64:
		return fmt.Errorf("%w: the id of the entity key is not up to 64 printable characters without space and comma", ErrOptions)
	case id != "" && !key:
		return fmt.Errorf("%w: an id of an entity key without a key", ErrOptions)
	}
	return nil
}
