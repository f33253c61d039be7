package checkpoint

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// keyName stands before signatures. Keys are told apart by their ids, not by names.
	keyName = "clefbench"
	// algorithm is signed-note's number of Ed25519.
	algorithm = 1
	// maxSignatures bounds the work on a note; a note of many signatures may come from
	// people who do not hold the key.
	maxSignatures = 100
)

// keyID is the id of a key under a name, as https://c2sp.org/signed-note defines it.
func keyID(name string, key ed25519.PublicKey) []byte {
	b := append([]byte(name), '\n', algorithm)
	h := sha256.Sum256(append(b, key...))
	return h[:4]
}

// sign returns the note: the text, an empty line, and a line with the signature.
func sign(text, name string, key ed25519.PrivateKey) []byte {
	sig := append(keyID(name, key.Public().(ed25519.PublicKey)), ed25519.Sign(key, []byte(text))...)
	return fmt.Appendf(nil, "%s\n\u2014 %s %s\n", text, name, base64.StdEncoding.EncodeToString(sig))
}

// verify returns the text of a note that the key has signed. Signatures of other keys are
// stepped over; one of this key that does not hold is an error.
func verify(note []byte, name string, key ed25519.PublicKey) ([]byte, error) {
	if len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%w: no Ed25519 key", ErrKey)
	}
	if !utf8.Valid(note) {
		return nil, fmt.Errorf("%w: not UTF-8", ErrFormat)
	}
	// The signatures begin after the last empty line.
	at := bytes.LastIndex(note, []byte("\n\n"))
	if at < 0 || at+2 >= len(note) || !bytes.HasSuffix(note, []byte("\n")) {
		return nil, fmt.Errorf("%w: no signature", ErrFormat)
	}
	text, lines := note[:at+1], strings.Split(string(note[at+2:len(note)-1]), "\n")
	if len(lines) > maxSignatures {
		return nil, fmt.Errorf("%w: more than %d signatures", ErrFormat, maxSignatures)
	}
	signed := false
	for _, line := range lines {
		who, sig, err := parseSignature(line)
		if err != nil {
			return nil, err
		}
		if who != name || !bytes.Equal(sig[:4], keyID(name, key)) {
			continue
		}
		if !ed25519.Verify(key, text, sig[4:]) {
			return nil, fmt.Errorf("%w: the signature does not hold: the text was changed", ErrSignature)
		}
		signed = true
	}
	if !signed {
		return nil, fmt.Errorf("%w: its signatures are of other keys", ErrSignature)
	}
	return text, nil
}

func parseSignature(line string) (name string, sig []byte, err error) {
	rest, ok := strings.CutPrefix(line, "\u2014 ")
	name, text, found := strings.Cut(rest, " ")
	if !ok || !found || !isWord(name) {
		return "", nil, fmt.Errorf("%w: malformed signature line", ErrFormat)
	}
	if sig, err = base64.StdEncoding.Strict().DecodeString(text); err != nil || len(sig) < 5 {
		return "", nil, fmt.Errorf("%w: malformed signature of %q", ErrFormat, name)
	}
	return name, sig, nil
}
