package arrowfile

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"
	"sync/atomic"
)

// checkDigests holds the messages of a sealed file against the digests that its footer
// lists. The list is verified by then, so that the messages can be checked apart from each
// other, a worker for each core; the first in the file that fails is reported.
func (f *File) checkDigests(messages []*message, digests []sum) error {
	errs := make([]error, len(messages))
	declared := make([]int64, len(messages))
	var next atomic.Int64
	check := func() {
		for i := int(next.Add(1)) - 1; i < len(messages); i = int(next.Add(1)) - 1 {
			errs[i] = f.guard(func() error {
				declared[i] = messages[i].declared()
				return f.checkDigest(messages, digests, i)
			})
		}
	}
	var wg sync.WaitGroup
	for range min(f.workers, len(messages)) - 1 {
		wg.Go(check)
	}
	check()
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return f.corrupt(messages[i].offset, err)
		}
		f.largest = max(f.largest, declared[i])
	}
	return nil
}

// checkDigest checks one message. What is read of it later, its body aside, is copied
// first: a file that changes while it is mapped must not change what was verified. Bodies
// have zstd's checksums.
func (f *File) checkDigest(messages []*message, digests []sum, i int) error {
	m, prev := messages[i], sum{}
	if i > 0 {
		prev = digests[i-1]
	}
	if f.mapped.data != nil {
		m.table.f.b = bytes.Clone(m.table.f.b)
	}
	part := f.data[m.offset:m.end()]
	d := digestOf(prev, part, m.digestAt)
	if d != digests[i] {
		return fmt.Errorf("the digest of message %d does not match", i)
	}
	if m.header != headerSchema && (m.digestAt == 0 || hex.EncodeToString(d[:]) != string(part[m.digestAt:m.digestAt+digestText])) {
		return fmt.Errorf("the digest in message %d does not match", i)
	}
	return nil
}

// declared is the number of bytes that a message's buffers say to have when they are
// decompressed, no matter whether that is true.
func (m *message) declared() int64 {
	if m.header != headerRecord {
		return 0
	}
	total := int64(len(m.body))
	f := flat{b: m.table.f.b}
	rb := m.table
	rb.f = &f
	pos, n := rb.vector(2, 16)
	for i := range n {
		at := int64(binary.LittleEndian.Uint64(f.b[pos+16*i:]))
		size := int64(binary.LittleEndian.Uint64(f.b[pos+16*i+8:]))
		if at >= 0 && size >= 8 && at <= int64(len(m.body))-8 {
			total += min(max(int64(binary.LittleEndian.Uint64(m.body[at:])), 0), maxBuffer)
		}
	}
	return total
}
