package checkpoint

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Ext is the extension of checkpoint files.
const Ext = ".checkpoint"

// MaxBytes bounds a checkpoint: one has a line for each recorder that wrote to a directory.
const MaxBytes = 4 << 20

// Errors that callers branch on.
var (
	// ErrFormat is wrapped when a text is no checkpoint of a version that is known.
	ErrFormat = errors.New("not a checkpoint")
	// ErrSignature is wrapped when no signature of the key holds.
	ErrSignature = errors.New("checkpoint is not signed by this key")
)

// firstLine names format and version.
const firstLine = "clefbench checkpoint 1"

// Head is the last segment of a chain.
type Head struct {
	// Segment is its name, Digest its file digest in hex, Length the number of segments of
	// the chain up to and including it.
	Segment string `json:"segment"`
	Digest  string `json:"digest"`
	Length  int64  `json:"length"`
}

// Checkpoint tells how far chains had come at a time.
type Checkpoint struct {
	// Origin names the recorder or the data set that the checkpoint is of.
	Origin string
	// Time is by the clock of whoever signed.
	Time  time.Time
	Heads []Head
}

// Text is what is signed. Names must be one word.
func (c *Checkpoint) Text() (string, error) {
	if len(c.Heads) == 0 {
		return "", fmt.Errorf("%w: no head", ErrFormat)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\norigin %s\ntime %s\n", firstLine, c.Origin, c.Time.UTC().Format(time.RFC3339Nano))
	words := []string{c.Origin}
	for _, h := range c.Heads {
		fmt.Fprintf(&b, "head %s %s %d\n", h.Segment, h.Digest, h.Length)
		words = append(words, h.Segment)
		if err := h.check(); err != nil {
			return "", err
		}
	}
	for _, w := range words {
		if !isWord(w) {
			return "", fmt.Errorf("%w: %q is not one word", ErrFormat, w)
		}
	}
	return b.String(), nil
}

func (h *Head) check() error {
	if d, err := hex.DecodeString(h.Digest); err != nil || len(d) != 32 || strings.ToLower(h.Digest) != h.Digest || h.Length < 1 {
		return fmt.Errorf("%w: head %q of digest %q and length %d", ErrFormat, h.Segment, h.Digest, h.Length)
	}
	return nil
}

func isWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r == unicode.ReplacementChar || unicode.IsSpace(r) || unicode.IsControl(r)
	})
}

// Sign returns the text of the checkpoint and its signature.
func (c *Checkpoint) Sign(key ed25519.PrivateKey) ([]byte, error) {
	text, err := c.Text()
	if err != nil {
		return nil, err
	}
	if len(key) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("%w: no Ed25519 key", ErrKey)
	}
	return sign(text, keyName, key), nil
}

// Open verifies that a checkpoint is signed by the key, and reads it. Only what is signed
// is parsed. Errors wrap [ErrFormat] or [ErrSignature].
func Open(data []byte, key ed25519.PublicKey) (*Checkpoint, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("%w: larger than %d bytes", ErrFormat, MaxBytes)
	}
	text, err := verify(data, keyName, key)
	if err != nil {
		return nil, err
	}
	return parse(text)
}

// parse reads the signed text; what Text would not write again is refused.
func parse(text []byte) (*Checkpoint, error) {
	c := &Checkpoint{}
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if err := c.line(i, line); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	again, err := c.Text()
	if err == nil && again != string(text) {
		err = fmt.Errorf("%w: it is not written as this version writes", ErrFormat)
	}
	return c, err
}

func (c *Checkpoint) line(i int, line string) (err error) {
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case i == 0 && line == firstLine:
		return nil
	case i == 0:
		return fmt.Errorf("%w: %q, this program reads %q", ErrFormat, line, firstLine)
	case i == 1 && word == "origin":
		c.Origin = rest
	case i == 2 && word == "time":
		if c.Time, err = time.Parse(time.RFC3339Nano, rest); err != nil {
			return fmt.Errorf("%w: %w", ErrFormat, err)
		}
	case i > 2 && word == "head":
		f := strings.Split(rest, " ")
		if len(f) != 3 {
			return fmt.Errorf("%w: head of %d words", ErrFormat, len(f))
		}
		n, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrFormat, err)
		}
		c.Heads = append(c.Heads, Head{Segment: f[0], Digest: f[1], Length: n})
	default:
		return fmt.Errorf("%w: %q", ErrFormat, word)
	}
	return nil
}
