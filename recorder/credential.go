package recorder

import (
	"strings"

	"github.com/clefbench/clefbench/internal/secret"
)

// urlHeader reports whether an attribute is a header that holds a URL.
func urlHeader(name string) bool {
	h, ok := strings.CutPrefix(strings.ToLower(name), "headers.")
	if !ok {
		return false
	}
	w := secret.Words(h)
	if len(w) == 0 {
		return false
	}
	switch w[len(w)-1] {
	case "referer", "referrer", "location", "url", "uri", "path":
		return true
	}
	return false
}

// bareURL cuts off what of a URL may hold credentials: query, fragment and userinfo. A
// value beside a credential's name in the path (;jsessionid=x) becomes "***".
func bareURL(s string) string {
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		s = s[:i]
	}
	if !strings.ContainsAny(s, "@=") {
		return s
	}
	return hidePairs(hideURLs(s))
}
