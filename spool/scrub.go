package spool

import (
	"regexp"

	"github.com/clefbench/clefbench/internal/secret"
)

// urlSecrets are the parts of a URL in which a credential may stand: userinfo and query.
var urlSecrets = regexp.MustCompile(`(://)[^/\s"@]*@|(\?)[^\s"]*`)

// maxErrorText bounds what is kept of an error: servers answer with pages.
const maxErrorText = 1000

// scrub takes out of an error's text what may be a credential. The AWS SDK puts none there;
// a proxy's answer might.
func scrub(text string) string {
	text, _ = secret.Replace(text)
	text = urlSecrets.ReplaceAllString(text, "$1$2")
	if len(text) > maxErrorText {
		text = text[:maxErrorText] + "..."
	}
	return text
}
