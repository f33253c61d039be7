package decision

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// ErrBadID reports text that is not a UUID.
var ErrBadID = errors.New("not a UUID")

// ID is a UUID (RFC 9562) in its 16 bytes. Recorded decisions and requests carry
// version 7 (time ordered); imported rows carry version 8. The zero ID means "none".
type ID [16]byte

// NewID returns a version 7 UUID for the time t: 48 bits of Unix milliseconds, then
// random bits. Ids of one millisecond are in no particular order.
func NewID(t time.Time) ID {
	var id ID
	binary.BigEndian.PutUint64(id[:8], uint64(t.UnixMilli())<<16|rand.Uint64()&0x0fff|0x7000)
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()&^(3<<62)|2<<62)
	return id
}

// ParseID reads the 36-character form with dashes, or 32 hexadecimal digits.
// The error is [ErrBadID], wrapped with the text.
func ParseID(s string) (ID, error) {
	var id ID
	compact := s
	if len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		compact = s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	}
	if len(compact) != 32 {
		return id, fmt.Errorf("%q: %w", s, ErrBadID)
	}
	if _, err := hex.Decode(id[:], []byte(compact)); err != nil {
		return ID{}, fmt.Errorf("%q: %w", s, ErrBadID)
	}
	return id, nil
}

// IsZero reports whether the id is absent.
func (id ID) IsZero() bool { return id == ID{} }

// Time returns the creation time of a version 7 id, to the millisecond, and false
// for any other version.
func (id ID) Time() (time.Time, bool) {
	if id[6]>>4 != 7 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16)).UTC(), true
}

// String returns the 36-character form.
func (id ID) String() string {
	var b [36]byte
	hex.Encode(b[0:8], id[0:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:36], id[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// MarshalText implements [encoding.TextMarshaler].
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]; errors are those of [ParseID].
func (id *ID) UnmarshalText(b []byte) error {
	v, err := ParseID(string(b))
	if err == nil {
		*id = v
	}
	return err
}
