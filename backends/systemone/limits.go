package systemone

import (
	"errors"
	"fmt"
)

// ErrMalformed is wrapped by every error about a body that is no JSON text of the wire's
// form; errors.As with *[SyntaxError] gives the position.
var ErrMalformed = errors.New("malformed body")

// ErrLimit is wrapped by the errors about a body that exceeds [Limits].
var ErrLimit = errors.New("body exceeds a limit")

// SyntaxError is a finding in a body. It wraps [ErrMalformed].
type SyntaxError struct {
	// Line and Column count from 1, Column in bytes.
	Line, Column int
	Message      string
}

// Error returns line:column and the message.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message)
}

// Unwrap returns [ErrMalformed].
func (e *SyntaxError) Unwrap() error { return ErrMalformed }

// Limits bound what a parser accepts; the zero value of a field is its default.
type Limits struct {
	// Bytes bounds the body, Depth its nesting.
	Bytes, Depth int
	// Questions bounds the questions and the answers of a body, Options the options, levels
	// or probabilities of one of them.
	Questions, Options int
}

// Defaults of [Limits]. The largest request that was seen had 400 questions, the largest
// documented question 255 options.
const (
	DefaultBytes     = 32 << 20
	DefaultDepth     = 128
	DefaultQuestions = 4096
	DefaultOptions   = 4096
)

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		v   *int
		def int
	}{{&l.Bytes, DefaultBytes}, {&l.Depth, DefaultDepth}, {&l.Questions, DefaultQuestions}, {&l.Options, DefaultOptions}} {
		if *f.v <= 0 {
			*f.v = f.def
		}
	}
	return l
}
