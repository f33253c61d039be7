package secret

import "strings"

const (
	maxLocal  = 64
	maxDomain = 253
)

// at looks around an '@': a URL with a password in front of its host, or the address of
// a mailbox. It returns where to go on, 0 where there is neither.
func (f *finder) at(i int) int {
	if from := f.userinfo(i); from >= 0 {
		return f.add(from, i, Userinfo)
	}
	from, to := f.local(i), f.domain(i+1)
	if from == i || to == 0 {
		return 0
	}
	// scp's form of a repository: git@host:path.
	if f.s[from:i] == "git" {
		return 0
	}
	return f.add(from, to, Email)
}

// userinfo returns where a user name with a password begins that ends at i, else -1.
func (f *finder) userinfo(i int) int {
	colon := false
	for k := i - 1; k >= f.done && i-k <= 2*maxDomain; k-- {
		f.work++
		switch b := f.s[k]; {
		case b == ':':
			colon = true
		case b == '/':
			if colon && k >= 2 && f.s[k-1] == '/' && f.s[k-2] == ':' && k+1 < i && !marked(f.s[k+1:i]) {
				return k + 1
			}
			return -1
		case b <= ' ' || strings.IndexByte("\"'<>`?#@", b) >= 0:
			return -1
		}
	}
	return -1
}

// local returns where a mailbox begins that ends at i.
func (f *finder) local(i int) int {
	k := i
	for k > f.done && i-k < maxLocal && class[f.s[k-1]]&isMail != 0 {
		k--
	}
	f.work += i - k
	for k < i && f.s[k] >= 0x80 && f.s[k] < 0xc0 {
		k++ // no half of a letter
	}
	for k < i && strings.IndexByte(".-+%'", f.s[k]) >= 0 {
		k++
	}
	return k
}

// domain returns where a domain name ends that begins at i, 0 where there is none: it has
// a dot, and behind the last one letters that are not the extension of a file.
func (f *finder) domain(i int) int {
	end, label, first := i, i, true
	numeric := true
	for end < len(f.s) && end-i < maxDomain {
		b := f.s[end]
		if b == '.' {
			if end == label || end+1 == len(f.s) || class[f.s[end+1]]&(isWord|isMail) == 0 || f.s[end+1] == '.' {
				break
			}
			if first && numeric {
				return 0 // a version: react@18.2.0
			}
			label, first = end+1, false
		} else if b == '_' || b == '%' || b == '+' || b == '\'' || class[b]&isMail == 0 {
			break
		}
		numeric = numeric && class[b]&isDigit != 0
		end++
	}
	f.work += end - i
	for end > label && f.s[end-1] == '-' {
		end--
	}
	if first || end-i >= maxDomain || !topLevel(f.s[label:end]) {
		return 0
	}
	return end
}

// topLevel reports whether a label may end a domain name.
func topLevel(s string) bool {
	if len(s) < 2 || len(s) > 63 {
		return false
	}
	switch s {
	case "png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "ts", "json", "html", "map":
		return false // icon@2x.png
	}
	if strings.HasPrefix(s, "xn--") {
		return true
	}
	for i := 0; i < len(s); i++ {
		if s[i] < 0x80 && class[s[i]]&(isUpper|isLower) == 0 {
			return false
		}
	}
	return true
}
