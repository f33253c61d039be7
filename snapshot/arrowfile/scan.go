package arrowfile

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// scanner walks the messages of a file from its head, checking the chain of digests. It
// needs no footer.
type scanner struct {
	data []byte
	next int64
	last sum
	// seen is the highest kind of message so far: schema, dictionaries, batches.
	seen byte
}

// message returns the next message, once its digest holds. After an error, next is the
// offset at which the good part ends.
func (s *scanner) message() (*message, error) {
	if s.next == 0 {
		s.next = int64(len(headMagic))
		if len(s.data) < len(headMagic) || string(s.data[:len(headMagic)]) != headMagic {
			return nil, fmt.Errorf("does not begin as an Arrow file")
		}
	}
	m, err := parseMessage(s.data, s.next)
	if err != nil {
		return nil, err
	}
	if err := s.inOrder(m.header); err != nil {
		return nil, err
	}
	bytes := s.data[m.offset:m.end()]
	d := digestOf(s.last, bytes, m.digestAt)
	if m.header != headerSchema {
		if m.digestAt == 0 || hex.EncodeToString(d[:]) != string(bytes[m.digestAt:m.digestAt+digestText]) {
			return nil, fmt.Errorf("the digest of the message does not match")
		}
	}
	s.last, s.next, s.seen = d, m.end(), m.header
	return m, nil
}

// inOrder: one schema, then the dictionaries, then the batches.
func (s *scanner) inOrder(header byte) error {
	ok := header == headerSchema && s.seen == 0 ||
		header == headerDictionary && (s.seen == headerSchema || s.seen == headerDictionary) ||
		header == headerRecord && s.seen != 0
	if !ok {
		return fmt.Errorf("message of kind %d after one of kind %d", header, s.seen)
	}
	return nil
}

// batchInfo reads what a batch says about the rows up to its end.
func batchInfo(m *message) (segmentInfo, error) {
	var info segmentInfo
	text, ok := m.meta[keySegment]
	if !ok {
		return info, fmt.Errorf("a batch without its account of rows")
	}
	err := json.Unmarshal([]byte(text), &info)
	return info, err
}
