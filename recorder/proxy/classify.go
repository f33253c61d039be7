package proxy

import (
	"mime"
	"net/http"
	"strings"
)

// form is how the bodies of a request may be read.
type form uint8

const (
	// formNone: no decision; the request passes and is counted.
	formNone form = iota
	// formQuestions: SystemOne or Decisions, told apart by the body.
	formQuestions
	formDecide
	// formUnknown: the path says nothing; the body may be formQuestions.
	formUnknown
)

// classify tells by method, headers and path what a request is.
func (d Dialect) classify(r *http.Request) form {
	if r.Method != http.MethodPost || r.Header.Get("Upgrade") != "" {
		return formNone
	}
	json := isJSON(r.Header.Get("Content-Type"))
	switch d {
	case DialectDecide:
		if json {
			return formDecide
		}
		return formNone
	case DialectSystemOne, DialectDecisions:
		if json {
			return formQuestions
		}
		return formNone
	}
	switch path := strings.TrimSuffix(r.URL.Path, "/"); {
	case strings.HasSuffix(path, "/systemone"), strings.HasSuffix(path, "/decisions"),
		strings.HasSuffix(path, "/evaluation-model"), strings.Contains(path, "/ai/run/@cf/cloudflare/clef"):
		return formQuestions
	case strings.HasSuffix(path, "/v1/decide"):
		return formDecide
	case json:
		return formUnknown
	}
	return formNone
}

// isJSON takes a missing type for JSON: small clients leave it out.
func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}
