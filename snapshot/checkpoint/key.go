package checkpoint

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrKey is wrapped when a key cannot be used.
var ErrKey = errors.New("no usable key")

// maxKey bounds key files: an Ed25519 key in PEM has some 120 bytes.
const maxKey = 64 << 10

// ParsePrivateKey reads an Ed25519 key of a PEM block PRIVATE KEY (PKCS #8), as
// `openssl genpkey -algorithm ed25519` writes it. Errors do not quote the text.
func ParsePrivateKey(text []byte) (ed25519.PrivateKey, error) {
	der, err := block(text, "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	// The parser's own error may tell of the bytes: a secret has no place in messages.
	k, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("%w: the block PRIVATE KEY is not PKCS #8", ErrKey)
	}
	key, ok := k.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%w: it is not an Ed25519 key", ErrKey)
	}
	return key, nil
}

// ParsePublicKey reads an Ed25519 key of a PEM block PUBLIC KEY (SubjectPublicKeyInfo),
// as `openssl pkey -in key.pem -pubout` writes it. A private key is refused, so that
// nobody hands one round.
func ParsePublicKey(text []byte) (ed25519.PublicKey, error) {
	der, err := block(text, "PUBLIC KEY")
	if err != nil {
		return nil, err
	}
	k, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	key, ok := k.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%w: it is not an Ed25519 key", ErrKey)
	}
	return key, nil
}

// block returns the one PEM block of a text.
func block(text []byte, want string) ([]byte, error) {
	b, rest := pem.Decode(text)
	switch {
	case b == nil:
		return nil, fmt.Errorf("%w: no PEM block", ErrKey)
	case b.Type != want:
		return nil, fmt.Errorf("%w: a PEM block %q (want %q)", ErrKey, b.Type, want)
	}
	if more, _ := pem.Decode(rest); more != nil {
		return nil, fmt.Errorf("%w: more than one PEM block", ErrKey)
	}
	return b.Bytes, nil
}

// ReadPrivateKey reads the key from a file; see [ParsePrivateKey].
func ReadPrivateKey(path string) (ed25519.PrivateKey, error) { return read(path, ParsePrivateKey) }

// ReadPublicKey reads the key from a file; see [ParsePublicKey].
func ReadPublicKey(path string) (ed25519.PublicKey, error) { return read(path, ParsePublicKey) }

func read[K any](path string, parse func([]byte) (K, error)) (key K, err error) {
	f, err := os.Open(path)
	if err != nil {
		return key, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return key, err
	}
	if len(text) > maxKey {
		return key, fmt.Errorf("%s: %w: larger than %d bytes", path, ErrKey, maxKey)
	}
	if key, err = parse(text); err != nil {
		return key, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}
