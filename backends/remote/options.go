package remote

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clefbench/clefbench/internal/document"
)

// Defaults of a client.
const (
	DefaultTimeout     = 10 * time.Second
	DefaultMaxResponse = 1 << 20
	defaultConns       = 64
)

// ClientOptions say which service is asked, and how.
type ClientOptions struct {
	// Name is the lane's name; it defaults to decide.
	Name string
	// BaseURL is the service's address, http or https, to which /v1/decide is added.
	BaseURL string
	// KeyEnv names the environment variable with the key for the Authorization header;
	// empty means that none is sent. The key itself is no option. It has at least 8
	// characters, since it is taken out of everything that the service sends.
	KeyEnv string
	// Timeout bounds a request, also one whose own deadline is later; 0 leaves it to the
	// deadline, and to [DefaultTimeout] where there is none.
	Timeout time.Duration
	// MaxResponse bounds a response body; it defaults to [DefaultMaxResponse].
	MaxResponse int64
	// Deterministic is the user's word that the service gives the same answer to the same
	// request; nothing on the wire says so.
	Deterministic bool
	// NoBreaker makes every call, also to a service that never answers.
	NoBreaker bool
	// Transport replaces the HTTP transport; nil gives one that keeps its connections.
	Transport http.RoundTripper
	// Getenv reads the environment; it defaults to [os.Getenv].
	Getenv func(string) string
}

// ParseOptions makes client options from a target URL and the options of a
// specification: timeout (a duration such as 15ms), key_env, deterministic, and breaker
// (on or off).
func ParseOptions(name, target string, options url.Values) (ClientOptions, error) {
	o := ClientOptions{Name: name, BaseURL: target}
	known := []string{"breaker", "deterministic", "key_env", "timeout"}
	for _, key := range slices.Sorted(maps.Keys(options)) {
		value := options.Get(key)
		var err error
		switch key {
		case "breaker":
			if o.NoBreaker = value == "off"; value != "on" && value != "off" {
				err = errors.New("must be on or off")
			}
		case "timeout":
			if o.Timeout, err = time.ParseDuration(value); err == nil && o.Timeout <= 0 {
				err = errors.New("must be above 0")
			}
		case "key_env":
			o.KeyEnv = value
		case "deterministic":
			o.Deterministic, err = strconv.ParseBool(value)
		default:
			err = fmt.Errorf("unknown; known options: %s", strings.Join(known, ", "))
			if c := document.Closest(key, known); c != "" {
				err = fmt.Errorf("unknown (did you mean %q?)", c)
			}
		}
		if err != nil {
			return o, fmt.Errorf("option %q: %w", key, err)
		}
	}
	return o, nil
}

// withDefaults fills in what is zero.
func (o ClientOptions) withDefaults() ClientOptions {
	if o.Name == "" {
		o.Name = Dialect
	}
	if o.MaxResponse <= 0 {
		o.MaxResponse = DefaultMaxResponse
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = defaultConns
		t.DisableCompression = true // bodies are small, and bytes are counted
		o.Transport = t
	}
	return o
}

// parseBase checks the address; what it refuses is not printed where it may hold a
// password.
func parseBase(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		return nil, errors.New("the target must be a URL such as http://127.0.0.1:8080")
	case u.User != nil:
		return nil, errors.New("the URL holds a user name or password; use key_env=NAME, the name of an environment variable")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the URL must not have a query or a fragment")
	}
	return u, nil
}

// key reads the key. A value that cannot stand in a header is refused here, since the
// HTTP client would print it.
func (o ClientOptions) key() (string, error) {
	if o.KeyEnv == "" {
		return "", nil
	}
	key := strings.TrimSpace(o.Getenv(o.KeyEnv))
	if key == "" {
		return "", fmt.Errorf("the environment variable %s (key_env) is not set", o.KeyEnv)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return "", fmt.Errorf("the environment variable %s (key_env) holds blanks or control characters", o.KeyEnv)
		}
	}
	if len(key) < minKey {
		return "", fmt.Errorf("the environment variable %s (key_env) holds fewer than %d characters; so short a key could not be told from other text and kept out of the results", o.KeyEnv, minKey)
	}
	return key, nil
}
