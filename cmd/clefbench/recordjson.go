package main

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// exactJSON refuses what encoding/json lets pass although it changes the meaning: bytes
// that are no UTF-8 and halves of surrogate pairs (both would become U+FFFD, so that two
// labels merge), a key that stands twice in an object (the last would win), and a field
// in another case than the known ones. The text must be valid JSON otherwise.
func exactJSON(b []byte, known map[string]bool) error {
	if !utf8.Valid(b) {
		return errors.New("the line is not UTF-8")
	}
	if err := pairedSurrogates(b); err != nil {
		return err
	}
	return uniqueKeys(b, known)
}

// pairedSurrogates checks the \u escapes.
func pairedSurrogates(b []byte) error {
	high := false // the escape before was the first half of a pair
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 >= len(b) {
			if high {
				return errors.New(`half of a surrogate pair (\ud800 to \udfff)`)
			}
			continue
		}
		i++
		kind := byte(0) // 1 first half, 2 second half
		if b[i] == 'u' && i+4 < len(b) {
			kind = surrogate(b[i+1 : i+5])
			i += 4
		}
		if high != (kind == 2) {
			return errors.New(`half of a surrogate pair (\ud800 to \udfff)`)
		}
		high = kind == 1
	}
	return nil
}

// surrogate tells which half four hexadecimal digits are.
func surrogate(hex []byte) byte {
	if hex[0] != 'd' && hex[0] != 'D' {
		return 0
	}
	switch hex[1] {
	case '8', '9', 'a', 'b', 'A', 'B':
		return 1
	case 'c', 'd', 'e', 'f', 'C', 'D', 'E', 'F':
		return 2
	}
	return 0
}

// uniqueKeys walks valid JSON and compares the keys of each object as they are written.
func uniqueKeys(b []byte, known map[string]bool) error {
	var open [][][]byte // the keys of the objects around; nil entries are arrays
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{':
			open = append(open, [][]byte{})
		case '[':
			open = append(open, nil)
		case '}', ']':
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		case '"':
			end := endOfString(b, i)
			if key := b[i:end]; isKey(b, end) && len(open) > 0 {
				top := len(open) - 1
				if top == 0 && !known[string(key[1:len(key)-1])] {
					return fmt.Errorf("unknown field %s", key)
				}
				for _, k := range open[top] {
					if bytes.Equal(k, key) {
						return fmt.Errorf("the key %s stands twice", key)
					}
				}
				open[top] = append(open[top], key)
			}
			i = end - 1
		}
	}
	return nil
}

// endOfString returns the index after the closing quote of the string that opens at i.
func endOfString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// isKey reports whether a colon follows.
func isKey(b []byte, i int) bool {
	for ; i < len(b); i++ {
		switch b[i] {
		case ' ', '\t', '\n', '\r':
		default:
			return b[i] == ':'
		}
	}
	return false
}
