package backends

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/clefbench/clefbench/internal/secret"
)

// ErrSpec reports a specification that is malformed, or a kind that does not exist.
var ErrSpec = errors.New("backend specification")

// Spec is a parsed backend specification: [NAME=]KIND[:TARGET][?option=value&...].
type Spec struct {
	// Name is the lane's name; it defaults to Kind.
	Name string
	// Kind is the sort of backend: rules, flash, decide, recorded, ...
	Kind string
	// Target is a file, a directory or a URL, taken as written up to the first question
	// mark; empty for a kind without one.
	Target string
	// Options are what followed the question mark. They never hold a secret.
	Options url.Values
}

// ParseSpec reads a specification. The part before the first of ":", "?" and "=" tells
// whether there is a NAME: `a=flash:x` has one, `decide:http://h/?q=1` has none. The
// error wraps [ErrSpec].
//
// A key has no place in a specification, because command lines and configuration files
// are logged: an option called key, token or the like and a password in a URL are
// refused without being printed; key_env=NAME names an environment variable.
func ParseSpec(s string) (Spec, error) {
	spec, rest := Spec{}, s
	if i := strings.IndexAny(s, "=:?"); i >= 0 && s[i] == '=' {
		spec.Name, rest = s[:i], s[i+1:]
		if !validName(spec.Name) {
			return Spec{}, fmt.Errorf("%w: name %q must be printable and without spaces", ErrSpec, spec.Name)
		}
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	var hasTarget bool
	spec.Kind, spec.Target, hasTarget = strings.Cut(rest, ":")
	if !validKind(spec.Kind) {
		return Spec{}, fmt.Errorf("%w: kind %q must be a word of lower-case letters, digits and dashes, as in rules:edge.yaml or v2=rules:edge.yaml", ErrSpec, spec.Kind)
	}
	if hasTarget && spec.Target == "" {
		return Spec{}, fmt.Errorf("%w: nothing stands after %q", ErrSpec, spec.Kind+":")
	}
	if err := checkTarget(spec.Target); err != nil {
		return Spec{}, err
	}
	var err error
	if spec.Options, err = parseOptions(query, hasQuery); err != nil {
		return Spec{}, err
	}
	if spec.Name == "" {
		spec.Name = spec.Kind
	}
	return spec, nil
}

// String returns the specification in its canonical form, which ParseSpec reads back.
func (s Spec) String() string {
	out := s.Kind
	if s.Name != s.Kind {
		out = s.Name + "=" + out
	}
	if s.Target != "" {
		out += ":" + s.Target
	}
	if len(s.Options) > 0 {
		out += "?" + s.Options.Encode()
	}
	return out
}

func validName(s string) bool {
	if s == "" || len(s) > 200 {
		return false
	}
	for _, r := range s {
		if r <= ' ' || r == 0x7f || r == utf8.RuneError {
			return false
		}
	}
	return true
}

func validKind(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || i > 0 && (c >= '0' && c <= '9' || c == '-')) {
			return false
		}
	}
	return s != ""
}

// checkTarget refuses credentials inside a URL; it does not print them.
func checkTarget(target string) error {
	if strings.ContainsAny(target, "\x00\n\r") {
		return fmt.Errorf("%w: the target holds a control character", ErrSpec)
	}
	if _, after, ok := strings.Cut(target, "://"); ok {
		host, _, _ := strings.Cut(after, "/")
		if strings.Contains(host, "@") {
			return fmt.Errorf("%w: the URL holds a user name or password; use ?key_env=NAME, the name of an environment variable", ErrSpec)
		}
	}
	return nil
}

func parseOptions(query string, present bool) (url.Values, error) {
	if !present {
		return nil, nil
	}
	opts, err := url.ParseQuery(query)
	if err != nil {
		// The error is dropped: it quotes the text, which may hold what must not be printed.
		return nil, fmt.Errorf("%w: the options after ? are not of the form option=value&option=value", ErrSpec)
	}
	for key, values := range opts {
		if err := checkOption(key, values); err != nil {
			return nil, err
		}
	}
	return opts, nil
}

func checkOption(key string, values []string) error {
	switch {
	case !validOption(key):
		return fmt.Errorf("%w: option name %q must be a word of lower-case letters, digits, dashes and underscores", ErrSpec, key)
	case secretOption(key):
		return fmt.Errorf("%w: option %q would put a secret into the specification; use key_env=NAME, the name of an environment variable", ErrSpec, key)
	case len(values) != 1:
		return fmt.Errorf("%w: option %q stands %d times", ErrSpec, key, len(values))
	case strings.HasSuffix(key, "_env") && !validVariable(values[0]):
		return fmt.Errorf("%w: option %q must be the name of an environment variable, not a key (the value is not shown)", ErrSpec, key)
	}
	return nil
}

func validOption(s string) bool {
	return validKind(strings.ReplaceAll(s, "_", "-"))
}

// secretOption holds for names of credentials; key_env names a variable, not a key.
func secretOption(key string) bool {
	return !strings.HasSuffix(key, "_env") && secret.Parameter(key)
}

// validVariable accepts what is customary for a variable's name. Upper case is asked
// for, because most keys hold a lower-case letter or a dash and so are told apart.
func validVariable(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'A' && c <= 'Z' || c == '_' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != "" && len(s) <= 100
}
