package arrowfile

import (
	"encoding/binary"
	"math/bits"
)

// The primes of XXH64 (Y. Collet, xxHash fast digest algorithm, specification 0.1.1).
const (
	xxPrime1 = 11400714785074694791
	xxPrime2 = 14029467366897019727
	xxPrime3 = 1609587929392839161
	xxPrime4 = 9650029242287828579
	xxPrime5 = 2870177450012600261
)

// xxh64 is XXH64 with seed 0. Its lower half is the checksum of a zstd frame (RFC 8878,
// section 3.1.1); the zstd package has it, but not for others.
func xxh64(b []byte) uint64 {
	h, n := uint64(xxPrime5), uint64(len(b))
	if len(b) >= 32 {
		h, b = xxStripes(b)
	}
	h += n
	for ; len(b) >= 8; b = b[8:] {
		h = bits.RotateLeft64(h^xxRound(0, binary.LittleEndian.Uint64(b)), 27)*xxPrime1 + xxPrime4
	}
	if len(b) >= 4 {
		h = bits.RotateLeft64(h^uint64(binary.LittleEndian.Uint32(b))*xxPrime1, 23)*xxPrime2 + xxPrime3
		b = b[4:]
	}
	for _, c := range b {
		h = bits.RotateLeft64(h^uint64(c)*xxPrime5, 11) * xxPrime1
	}
	h = (h ^ h>>33) * xxPrime2
	h = (h ^ h>>29) * xxPrime3
	return h ^ h>>32
}

// xxStripes hashes all whole stripes of 32 bytes and returns the rest.
func xxStripes(b []byte) (uint64, []byte) {
	p1, p2 := uint64(xxPrime1), uint64(xxPrime2)
	v1, v2, v3, v4 := p1+p2, p2, uint64(0), -p1
	for ; len(b) >= 32; b = b[32:] {
		v1 = xxRound(v1, binary.LittleEndian.Uint64(b))
		v2 = xxRound(v2, binary.LittleEndian.Uint64(b[8:]))
		v3 = xxRound(v3, binary.LittleEndian.Uint64(b[16:]))
		v4 = xxRound(v4, binary.LittleEndian.Uint64(b[24:]))
	}
	h := bits.RotateLeft64(v1, 1) + bits.RotateLeft64(v2, 7) + bits.RotateLeft64(v3, 12) + bits.RotateLeft64(v4, 18)
	for _, v := range []uint64{v1, v2, v3, v4} {
		h = (h^xxRound(0, v))*xxPrime1 + xxPrime4
	}
	return h, b
}

func xxRound(acc, in uint64) uint64 {
	return bits.RotateLeft64(acc+in*xxPrime2, 31) * xxPrime1
}
