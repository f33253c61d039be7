package cedar

import (
	"bytes"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/x/exp/ast"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/internal/document"
)

// Limits on the policy file. cedar-go's parser and evaluator recurse once a bracket without
// a bound of their own, and 2,000,000 brackets overflow the stack, which Go cannot recover
// from; so a policy is bounded by its length.
const (
	MaxPolicies   = 20_000
	MaxPolicySize = 16 << 10
)

// actionType is the entity type of actions, principalType and resourceType those of the
// other two parts of a request.
const (
	actionType    = "Action"
	principalType = "Client"
	resourceType  = "Scenario"
)

// policy is one policy of the file.
type policy struct {
	id  string
	at  int
	pos decision.Position
	p   *cedar.Policy
}

// policies are those that may apply to one action, in file order. It is what cedar-go's
// Authorize iterates over; leaving out what names another action in its scope changes no
// answer, and keeps the cost of many actions from being their square.
type policies []*policy

// All hands the policies out in file order.
func (ps policies) All() iter.Seq2[cedar.PolicyID, *cedar.Policy] {
	return func(yield func(cedar.PolicyID, *cedar.Policy) bool) {
		for _, p := range ps {
			if !yield(cedar.PolicyID(p.id), p.p) {
				return
			}
		}
	}
}

// readPolicies parses a policy file; what is wrong is in doc.
func readPolicies(doc *document.File, data []byte) []*policy {
	switch {
	case len(data) > document.MaxSize:
		doc.Errorf(decision.Position{File: doc.Name}, "", "file has %d bytes, the limit is %d", len(data), document.MaxSize)
		return nil
	case !checkSizes(doc, data):
		return nil
	}
	list, err := parse(doc.Name, data)
	if err != nil {
		doc.Errorf(placed(doc.Name, err))
		return nil
	}
	if len(list) > MaxPolicies {
		doc.Errorf(position(list[MaxPolicies]), "", "the file has %d policies, the limit is %d", len(list), MaxPolicies)
		return nil
	}
	out := make([]*policy, len(list))
	seen := map[string]int{}
	for i, p := range list {
		x := &policy{id: fmt.Sprintf("policy%d", i), at: i, pos: position(p), p: p}
		if id := p.Annotations()["id"]; id != "" {
			x.id = string(id)
		}
		if line, dup := seen[x.id]; dup {
			doc.Errorf(x.pos, `give each policy an @id("...") of its own`, "policy id %q stands twice (first in line %d)", document.Short(x.id), line)
		}
		seen[x.id] = x.pos.Line
		out[i] = x
	}
	return out
}

// parse guards against panics of the parser: input is untrusted.
func parse(name string, data []byte) (list cedar.PolicyList, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("malformed: %v", r)
		}
	}()
	return cedar.NewPolicyListFromBytes(name, data)
}

func position(p *cedar.Policy) decision.Position {
	at := p.Position()
	return decision.Position{File: at.Filename, Line: at.Line, Column: at.Column}
}

// placed takes the position out of an error of cedar-go, for Errorf.
func placed(name string, err error) (pos decision.Position, hint, format string, message any) {
	pos = decision.Position{File: name}
	text := strings.TrimPrefix(err.Error(), "parser error: ")
	m := regexp.MustCompile(`^(?:parse error at )?<input>:(\d+):(\d+)(?: "(?:[^"\\]|\\.)*")?: `).FindStringSubmatch(text)
	if m == nil {
		return pos, "", "%s", text
	}
	pos.Line, _ = strconv.Atoi(m[1])
	pos.Column, _ = strconv.Atoi(m[2])
	return pos, "", "%s", text[len(m[0]):]
}

// checkSizes bounds the length of each policy, which ends at a semicolon outside of texts
// and comments.
func checkSizes(doc *document.File, data []byte) bool {
	start, line, from := 0, 1, 1
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '\n':
			line++
		case c == ';':
			start, from = i+1, line
		case c == '"':
			n, lines := textEnd(data[i+1:])
			i, line = i+n, line+lines
		case c == '/':
			n, lines := commentEnd(data[i+1:])
			i, line = i+n, line+lines
		}
		if i-start > MaxPolicySize {
			doc.Errorf(decision.Position{File: doc.Name, Line: from}, "split it", "a policy has more than %d bytes", MaxPolicySize)
			return false
		}
	}
	return true
}

// textEnd returns the length of a quoted text with its closing quote, and its line ends.
func textEnd(data []byte) (n, lines int) {
	for n < len(data) && data[n] != '"' {
		if data[n] == '\\' {
			n++
		}
		if n < len(data) && data[n] == '\n' {
			lines++
		}
		n++
	}
	return min(n+1, len(data)), lines
}

// commentEnd returns the length of a comment after its first slash, and its line ends; 0
// when it is none.
func commentEnd(data []byte) (n, lines int) {
	switch {
	case bytes.HasPrefix(data, []byte("/")):
		if n = bytes.IndexByte(data, '\n'); n < 0 {
			n = len(data)
		}
		return n, 0
	case bytes.HasPrefix(data, []byte("*")):
		if n = bytes.Index(data[1:], []byte("*/")); n < 0 {
			return len(data), bytes.Count(data, []byte("\n"))
		}
		return n + 3, bytes.Count(data[:n+3], []byte("\n"))
	}
	return 0, 0
}

// applies reports whether the scope of a policy lets an action in. There are no entities,
// so an action is in nothing but itself.
func (p *policy) applies(action cedar.EntityUID) bool {
	switch s := p.scope().(type) {
	case ast.ScopeTypeEq:
		return s.Entity == action
	case ast.ScopeTypeIn:
		return s.Entity == action
	case ast.ScopeTypeInSet:
		return slices.Contains(s.Entities, action)
	}
	return true
}

func (p *policy) scope() ast.IsActionScopeNode { return (*ast.Policy)(p.p.AST()).Action }

// named returns the actions that the scope of a policy names.
func (p *policy) named() []cedar.EntityUID {
	switch s := p.scope().(type) {
	case ast.ScopeTypeEq:
		return []cedar.EntityUID{s.Entity}
	case ast.ScopeTypeIn:
		return []cedar.EntityUID{s.Entity}
	case ast.ScopeTypeInSet:
		return s.Entities
	}
	return nil
}

// reads returns the attributes of the context that a policy names, written a or a.b, and
// whether it may read others.
func (p *policy) reads() (names []string, open bool) {
	for _, c := range p.p.AST().Conditions {
		ast.Inspect(ast.NewNode(c.Body), func(n ast.IsNode) bool {
			name, context := path(n)
			switch {
			case context && name == "":
				open = true
			case context:
				names = append(names, name)
				return false
			}
			return true
		})
	}
	return names, open
}

// path reads context, context.a and context.a.b, in either way of writing, and has.
func path(n ast.IsNode) (name string, context bool) {
	var op ast.StrOpNode
	switch n := n.(type) {
	case ast.NodeTypeVariable:
		return "", n.Name == "context"
	case ast.NodeTypeAccess:
		op = n.StrOpNode
	case ast.NodeTypeHas:
		op = n.StrOpNode
	default:
		return "", false
	}
	before, context := path(op.Arg)
	if before == "" {
		return string(op.Value), context
	}
	return before + "." + string(op.Value), context
}
