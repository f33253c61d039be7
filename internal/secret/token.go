package secret

import (
	"bytes"
	"encoding/base64"
	"math"
	"strings"
)

// shape is a documented prefix of keys, and what follows it.
type shape struct {
	prefix string
	// of is the class of the bytes behind the prefix, at least min of them; exact: no more.
	of    uint16
	min   int
	exact bool
	// core asks for a run of letters and digits as no name has it: the prefix is short, and
	// words joined by dashes follow it as well.
	core bool
}

// shapes lists the prefixes that providers document, so that scanners find them.
var shapes = []shape{
	// Amazon Web Services: ids of keys, of temporary ones, of bearer and of context tokens.
	{prefix: "AKIA", of: isUpper | isDigit, min: 16, exact: true}, {prefix: "ASIA", of: isUpper | isDigit, min: 16, exact: true},
	{prefix: "ABIA", of: isUpper | isDigit, min: 16, exact: true}, {prefix: "ACCA", of: isUpper | isDigit, min: 16, exact: true},
	{prefix: "ABSK", of: isToken, min: 100},
	// GitHub, GitLab, Atlassian, Postman, Docker.
	{prefix: "ghp_", of: isWord, min: 16}, {prefix: "gho_", of: isWord, min: 16}, {prefix: "ghs_", of: isWord, min: 16},
	{prefix: "ghu_", of: isWord, min: 16}, {prefix: "ghr_", of: isWord, min: 16}, {prefix: "github_pat_", of: isWord, min: 16},
	{prefix: "glpat-", of: isName, min: 16}, {prefix: "gldt-", of: isName, min: 16}, {prefix: "glrt-", of: isName, min: 16},
	{prefix: "glptt-", of: isName, min: 16}, {prefix: "glft-", of: isName, min: 16}, {prefix: "glcbt-", of: isName, min: 16},
	{prefix: "gloas-", of: isName, min: 16}, {prefix: "glimt-", of: isName, min: 16}, {prefix: "glsoat-", of: isName, min: 16},
	{prefix: "glagent-", of: isName, min: 16}, {prefix: "glffct-", of: isName, min: 16},
	{prefix: "ATATT3", of: isToken, min: 60}, {prefix: "PMAK-", of: isName, min: 32}, {prefix: "dckr_pat_", of: isName, min: 16},
	// Slack.
	{prefix: "xoxa-", of: isName, min: 10}, {prefix: "xoxb-", of: isName, min: 10}, {prefix: "xoxp-", of: isName, min: 10},
	{prefix: "xoxr-", of: isName, min: 10}, {prefix: "xoxs-", of: isName, min: 10}, {prefix: "xoxe-", of: isName, min: 10},
	{prefix: "xoxc-", of: isName, min: 10}, {prefix: "xoxd-", of: isToken, min: 10}, {prefix: "xapp-", of: isName, min: 10},
	{prefix: "hooks.slack.com/services/", of: isToken, min: 20},
	// Models: OpenAI, Anthropic and others (sk-), Hugging Face, Groq, Replicate, xAI,
	// Perplexity, LangSmith.
	{prefix: "sk-", of: isName, min: 16, core: true}, {prefix: "hf_", of: isWord, min: 30}, {prefix: "api_org_", of: isWord, min: 30},
	{prefix: "gsk_", of: isWord, min: 32}, {prefix: "r8_", of: isWord, min: 32}, {prefix: "xai-", of: isName, min: 32, core: true},
	{prefix: "pplx-", of: isName, min: 32}, {prefix: "lsv2_", of: isWord, min: 32},
	// Stripe, Square, Shopify.
	{prefix: "sk_live_", of: isWord, min: 10}, {prefix: "sk_test_", of: isWord, min: 10}, {prefix: "rk_live_", of: isWord, min: 10},
	{prefix: "rk_test_", of: isWord, min: 10}, {prefix: "sk_prod_", of: isWord, min: 10}, {prefix: "whsec_", of: isToken, min: 20},
	{prefix: "sq0atp-", of: isName, min: 20}, {prefix: "sq0csp-", of: isName, min: 20},
	{prefix: "shpat_", of: isWord, min: 32}, {prefix: "shpca_", of: isWord, min: 32}, {prefix: "shppa_", of: isWord, min: 32},
	{prefix: "shpss_", of: isWord, min: 32},
	// Google, Alibaba, DigitalOcean, Databricks, Doppler, HashiCorp Vault, OpenShift, Pulumi.
	{prefix: "AIza", of: isName, min: 30}, {prefix: "GOCSPX-", of: isName, min: 20}, {prefix: "ya29.", of: isName, min: 20},
	{prefix: "LTAI", of: isWord, min: 16}, {prefix: "dop_v1_", of: isWord, min: 32}, {prefix: "doo_v1_", of: isWord, min: 32},
	{prefix: "dor_v1_", of: isWord, min: 32}, {prefix: "dapi", of: isLower | isDigit, min: 32}, {prefix: "dp.pt.", of: isWord, min: 32},
	{prefix: "hvs.", of: isName, min: 24}, {prefix: "hvb.", of: isName, min: 24}, {prefix: "sha256~", of: isName, min: 40},
	{prefix: "pul-", of: isLower | isDigit, min: 40}, {prefix: "pscale_tkn_", of: isName, min: 20}, {prefix: "pscale_pw_", of: isName, min: 20},
	{prefix: "pscale_oauth_", of: isName, min: 20},
	// Package registries.
	{prefix: "npm_", of: isWord, min: 30}, {prefix: "pypi-AgE", of: isName, min: 40}, {prefix: "rubygems_", of: isWord, min: 40},
	{prefix: "CLOJARS_", of: isWord, min: 40},
	// Mail, observation, design, notes.
	{prefix: "SG.", of: isName, min: 40}, {prefix: "xkeysib-", of: isName, min: 40}, {prefix: "xsmtpsib-", of: isName, min: 40},
	{prefix: "SK", of: isLower | isDigit, min: 32, exact: true}, {prefix: "glsa_", of: isWord, min: 32}, {prefix: "glc_", of: isToken, min: 32},
	{prefix: "sntrys_", of: isToken, min: 40}, {prefix: "sntryu_", of: isWord, min: 40}, {prefix: "NRAK-", of: isName, min: 20},
	{prefix: "rdme_", of: isWord, min: 40}, {prefix: "figd_", of: isName, min: 30}, {prefix: "tfp_", of: isName, min: 40},
	{prefix: "lin_api_", of: isWord, min: 30}, {prefix: "ntn_", of: isWord, min: 40},
	{prefix: "AGE-SECRET-KEY-1", of: isWord, min: 50}, {prefix: "ops_eyJ", of: isToken, min: 60},
}

// shortWord is the length up to which a word has to be the whole of a prefix, or the part
// of one before its dash or dot. Most words of a text are no longer.
const shortWord = 8

// word returns the shortest and the longest word with which a key of this shape begins.
func (s *shape) word() (least, most int) {
	n := wordLen(s.prefix)
	switch {
	case n < len(s.prefix):
		return n, n
	case s.of&^(isWord|isDigit|isUpper|isLower) == 0:
		return n + s.min, math.MaxInt
	}
	return n, math.MaxInt
}

// beginsLong and beginsShort have, for a word's first byte, a bit for each second byte that
// calls for a look.
var beginsLong, beginsShort = func() (long, short [256]uint64) {
	add := func(prefix string, least, most int) {
		bit := uint64(1) << (prefix[1] & 63)
		if most > shortWord {
			long[prefix[0]] |= bit
		}
		if least <= shortWord {
			short[prefix[0]] |= bit
		}
	}
	for i := range shapes {
		least, most := shapes[i].word()
		add(shapes[i].prefix, least, most)
	}
	for _, jwt := range []string{"eyJ", "ewo"} {
		add(jwt, shortWord+1, math.MaxInt)
	}
	for _, scheme := range []string{"be", "Be", "BE", "ba", "Ba", "BA"} {
		add(scheme, len("basic"), len("bearer"))
	}
	for _, word := range []string{"curl", "token", "Token", "TOKEN", "apikey", "apiKey", "ApiKey", "APIKEY", "auth", "Auth", "AUTH"} {
		add(word, len(word), len(word))
	}
	for _, word := range []string{"authorization", "Authorization", "AUTHORIZATION"} {
		add(word, len(word), len(word))
	}
	return long, short
}()

// shapesBy has the shapes by their first byte.
var shapesBy = func() (out [128][]shape) {
	for _, s := range shapes {
		out[s.prefix[0]] = append(out[s.prefix[0]], s)
	}
	return out
}()

// word looks at a word that may begin a token, and returns where the token ends, else 0.
func (f *finder) word(start, end int) int {
	switch f.s[start] {
	case 'e':
		if to := f.jwt(start); to > 0 {
			return f.add(start, to, JWT)
		}
	case 'b', 'B':
		return f.scheme(start, end)
	case 'c', 't', 'T', 'a', 'A':
		if to := f.told(start, end); to > 0 {
			return to
		}
	}
	rest := f.s[start:]
	for i := range shapesBy[f.s[start]] {
		s := &shapesBy[f.s[start]][i]
		if strings.HasPrefix(rest, s.prefix) {
			if to := f.shaped(start+len(s.prefix), s); to > 0 {
				return f.add(start, to, APIKey)
			}
		}
	}
	return 0
}

// shaped returns where what follows a prefix ends, 0 where it is no key.
func (f *finder) shaped(from int, s *shape) int {
	n := f.span(from, s.of)
	to := from + n
	switch {
	case n < s.min, s.exact && n != s.min:
		return 0
	case to < len(f.s) && class[f.s[to]]&isWord != 0: // the word goes on in other bytes
		return 0
	case s.core && !core(head(f.s[from:to])):
		return 0
	}
	for f.s[to-1] == '.' || f.s[to-1] == '-' {
		to-- // of the sentence
	}
	return to
}

// core reports whether a text has ten letters and digits in a row, two or more of them
// digits.
func core(s string) bool {
	run, digits := 0, 0
	for i := 0; i < len(s); i++ {
		switch c := class[s[i]]; {
		case c&isDigit != 0:
			run, digits = run+1, digits+1
		case c&(isUpper|isLower) != 0:
			run++
		default:
			run, digits = 0, 0
		}
		if run >= 10 && digits >= 2 {
			return true
		}
	}
	return false
}

// jwt returns the end of three parts of base64url, the first of which begins as a JSON
// object does.
func (f *finder) jwt(start int) int {
	if !strings.HasPrefix(f.s[start:], "eyJ") && !strings.HasPrefix(f.s[start:], "ewo") {
		return 0
	}
	i := start
	for part := range 3 {
		n := f.spanIn(&f.parts[part], i, isPart)
		i += n
		switch {
		case part == 2:
			return i // an unsigned one ends in a dot
		case n < 8 || i == len(f.s) || f.s[i] != '.':
			return 0
		}
		i++
	}
	return 0
}

// scheme looks behind Bearer and Basic.
func (f *finder) scheme(start, end int) int {
	name := f.s[start:end]
	if len(name) != len("bearer") && len(name) != len("basic") {
		return 0
	}
	bearer := strings.EqualFold(name, "bearer")
	if !bearer && !strings.EqualFold(name, "basic") {
		return 0
	}
	from := end
	for from < len(f.s) && from-end < 8 && isSpace(f.s[from]) {
		from++
	}
	to := from + f.span(from, isToken)
	for to < len(f.s) && f.s[to] == '=' {
		to++
	}
	value := strings.TrimRight(f.s[from:to], ".")
	switch {
	case from == end || len(value) < 8:
		return 0
	case bearer && random(head(value)) || !bearer && userPassword(value):
		return f.add(from, from+len(value), Bearer)
	}
	return 0
}

// random reports whether a value is more likely drawn than written: a word has no digits,
// a long one has not both cases.
func random(s string) bool {
	digits, upper, lower := 0, 0, 0
	for i := 0; i < len(s); i++ {
		switch c := class[s[i]]; {
		case c&isDigit != 0:
			digits++
		case c&isUpper != 0:
			upper++
		case c&isLower != 0:
			lower++
		}
	}
	return digits > 0 || len(s) >= 20 && upper > 1 && lower > 1
}

// userPassword reports whether base64 holds a colon between printable text.
func userPassword(s string) bool {
	// The beginning is enough, in whole groups of four.
	s = strings.TrimRight(head(s), "=")
	var in [maxJudged]byte
	var buf [maxJudged]byte
	n, err := base64.RawStdEncoding.Decode(buf[:], in[:copy(in[:], s)])
	if err != nil {
		return false
	}
	for _, b := range buf[:n] {
		if b < ' ' {
			return false
		}
	}
	return bytes.IndexByte(buf[:n], ':') >= 0
}

const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
	// maxLabel bounds the label between the dashes.
	maxLabel = 64
)

// pem returns the end of a private key, to the end of the text where its end is missing.
// Certificates and public keys stay.
func (f *finder) pem(start int) int {
	label := f.s[start+len(pemBegin):]
	label = label[:min(len(label), maxLabel)]
	n := strings.Index(label, "-----")
	if n < 0 || !strings.Contains(label[:n], "PRIVATE KEY") {
		return 0
	}
	from := start + len(pemBegin) + n
	end := strings.Index(f.s[from:], pemEnd)
	if end < 0 {
		f.work += len(f.s) - from
		return f.add(start, len(f.s), PrivateKey)
	}
	f.work += end
	to := from + end + len(pemEnd)
	tail := f.s[to:min(len(f.s), to+maxLabel)]
	if n := strings.Index(tail, "-----"); n >= 0 {
		return f.add(start, to+n+5, PrivateKey)
	}
	return f.add(start, to, PrivateKey)
}
