package secret

import (
	"fmt"
	"strings"
	"testing"
)

// The positives are made up after the documentation of each form; « and » mark what has to
// be found.
func positives() map[Kind][]string {
	a40 := strings.Repeat("aB3dE5gH", 5)
	return map[Kind][]string{
		JWT: {"«eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U»",
			"id=1 x=«eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0In0.»", "「«eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_1»」",
			"see «eyJhbGciOiJSU0EtT0FFUCJ9.OKOawDo13gRp2ojaHV7LFpZcgV7T6DVZKTyKOMTYUmKoTCVJRgckCL9kiMT03JGe.»"},
		PrivateKey: {"«-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----»\nrest",
			"«-----BEGIN PRIVATE KEY-----\\nMIIEow\\n-----END PRIVATE KEY-----»\\n",
			"a «-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl", "«-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQ\n-----END PGP PRIVATE KEY BLOCK-----»"},
		APIKey: {"id «AKIAIOSFODNN7EXAMPLE»", "«ASIAY34FZKBOKMUTVV7A»,", "«ghp_" + a40[:36] + "»", "«gho_" + a40[:36] + "» «ghs_" + a40[:36] + "»",
			"git clone https://«ghu_" + a40[:36] + "»:x-oauth-basic", "«github_pat_11ABCDEFG0" + a40 + "_x»", "«xoxb-123456789012-abcdefGHIJ»",
			"«xoxp-1-2-3-abcdef0123»", "«xapp-1-A0123-456-abc»", "https://«hooks.slack.com/services/T0000/B0000/XXXXXXXXXXXX»",
			"key «sk-proj-" + a40 + "».", "«sk-ant-api03-" + a40 + "-" + a40 + "-AA»", "(«sk-" + a40 + "»)", "«sk_live_4eC39HqLyjWDarjtT1zdp7dc»",
			"«rk_test_4eC39HqLyjWDarjtT1zdp7dc»", "«whsec_" + a40 + "»", "«AIzaSyA1234567890abcdefghijklmnopqrstuv»", "«GOCSPX-" + a40[:28] + "»",
			"«ya29.a0AfH6SMBx-" + a40 + "»", "«glpat-" + a40[:20] + "»", "«npm_" + a40[:36] + "»", "«pypi-AgEIcHlwaS5vcmc" + a40 + "»",
			"«SG." + a40[:22] + "." + a40 + "»", "«hf_" + strings.Repeat("aBcD", 9) + "»", "«dop_v1_" + strings.Repeat("0a1b", 16) + "»",
			"«shpat_" + strings.Repeat("0a1b", 8) + "»", "«SK" + strings.Repeat("0a1b", 8) + "»", "«hvs." + a40 + "»", "«dapi" + strings.Repeat("0a1b", 8) + "»",
			"«glsa_" + strings.Repeat("aB3d", 8) + "_0a1b2c3d»", "«NRAK-" + a40[:27] + "»", "«lin_api_" + a40 + "»", "«sq0atp-" + a40[:22] + "»",
			"«AGE-SECRET-KEY-1" + strings.Repeat("QPZRY9X8", 7) + "QP»", "日本«sk-" + a40 + "»語", "«gsk_" + a40 + "»", "«dckr_pat_" + a40[:27] + "»"},
		Bearer: {"Bearer «SECRET-456z»", "header bearer  «mF_9.B5f-4.1JqM»", "BEARER «abcdefghijklmnopqrstUVW»", "curl -H 'x: Basic «QWxhZGRpbjpvcGVuIHNlc2FtZQ==»'"},
		Authorization: {"GET / HTTP/1.1\r\nAuthorization: «Bearer mF_9.B5f-4.1JqM»\r\nAccept: x", "authorization: «Digest username=\"a»",
			"Proxy-Authorization: «Basic QWxhZGRpbjpvcGVu»\n", "Authorization=«AWS4-HMAC-SHA256 Credential=AKIA/2, Signature=fe5»", `"Authorization": "«Token 9944b09199»"`, "auth: Token «9944b09199c6»", "x-auth = ApiKey «9944b09199c6»", "authorization header Token «9944b09199c62b»", "auth with ApiKey «9944b09199c62b»"},
		Cookie:   {"<set-cookie>«a=b»</set-cookie>"[:0] + "Cookie: «theme=dark; sid=38afes7a8»\r\nHost: h", "Set-Cookie: «id=a3fWa; Path=/; HttpOnly»", `"cookie": "«a=b»"`},
		Userinfo: {"https://«ada:pa55»@h.example/x", "curl -u «ada:x» https://h.example", "curl -s --user \"«ada:pa55 word»\" h", "postgres://«app:s3cr3t/»x"[:0] + "redis://«:p4ss»@cache:6379/0", "amqp://«u:p@ss»"[:0] + "mongodb+srv://«u:p-w»@c.example"},
		Credential: {"password=«hunter2»&x=1", `{"password": "«hunter2»"}`, `body "{\"api_key\":\"«x»\"}"`, "DB_PASSWORD='«correct horse»'", "api key: «x4Z9»", "client_secret => «abc»",
			"aws_secret_access_key = «wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY»", "?sig=«aB3dE5gHaB3d»&a=b", "x-api-key: «k3y»", "session id: «38afes7a8»", "pwd:«x1»;"[:0] + "pwd: «x1»;",
			"AccountKey=«Zm9v+ba/r0==»", "token=«abc»", "accessToken: «a1b2c3d4»", "PHPSESSID=«38afes7a8bcd»", "https://h/cb?key=«AbCdEf0123456789xY»", "passphrase \"«open sesame»"[:0] + "passphrase: \"«open sesame»\"",
			"user[password]=«x»", "<password>«swordfish»</password>", "<ns:Password type=\"a\">\n «x y@b.co z» \n</ns:Password>", "<a><api_key>«k»</api_key></a>", "password: '«a>b»«'»</password>", "run --password «hunter2» now",
			"--client-secret '«two words»'", "x --api-key \"«k»\"", "db:\n  password: |\n    «one\n    two»\n  user: x", "- name: API_KEY\n  value: «k3y»"[:0] + "token: >-\n «x»\ny: z", "secret:=«y7»"},
		Card: {"«4111111111111111»", "«4111 1111 1111 1111» 12/27", "«4111-1111-1111-1111»,", "«378282246310005»", "«3782 822463 10005»", "«5555 5555 5555 4444»", "«6011111111111117»", "«30569309025904»",
			"«3530111333300000»", "«2223003122003222»", "«4222 222 222 222»", "card:«4111\u00a01111\u00a01111\u00a01111»!", "«6212345678901232»", "«4000000000000000006»", "«6759649826438453»", "n«2200000000000053»"[:0] + "«2200000000000053»"},
		Email: {"«ada@example.com»", "mail to <«ada.lovelace+x@sub.example.co.uk»>, please", "«ünï@exämple.de».", "x;«a@b.co»;y", "mailto:«o'neil@example.org»?subject=x", "«ada@xn--bcher-kva.example»"},
	}
}

// mark shows the matches in a text as the tables write them.
func mark(text string, found []Match) string {
	var b strings.Builder
	done := 0
	for _, m := range found {
		b.WriteString(text[done:m.Start] + "«" + text[m.Start:m.End] + "»")
		done = m.End
	}
	return b.String() + text[done:]
}

var unmark = strings.NewReplacer("«", "", "»", "")

func TestFind(t *testing.T) {
	for kind, texts := range positives() {
		for _, want := range texts {
			if strings.Contains(want, "«") && !strings.Contains(want, "»") {
				want += "»"
			}
			text := unmark.Replace(want)
			found := Find(nil, []byte(text))
			got := mark(text, found)
			if got != want {
				t.Errorf("%s: got  %s\nwant %s", kind, got, want)
			}
			for _, m := range found {
				if m.Kind != kind {
					t.Errorf("%s: %s is called %s", kind, want, m.Kind)
				}
			}
			clean, _ := Replace(text)
			if again, more := Replace(clean); len(more) > 0 {
				t.Errorf("%s is replaced again: %s", clean, again)
			}
		}
	}
}

// Ordinary text stays.
func negatives() []string {
	return []string{
		"", "a", "550e8400-e29b-41d4-a716-446655440000", "41111111-1111-1111-1111-111111111111", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"d41d8cd98f00b204e9800998ecf8427e", "4111111111111112", "1700000000000", "1700000000000000000", "2024-05-05T12:34:56.123456789Z", "0.4111111111111111", "4111111111111111.5",
		"+49 151 23456789", "4915112345678", "4006381333931", "(555) 123-4567", "+1-202-555-0173", "4111 1111", "tel:+4111111111111111", "ref4111111111111111", "4111111111111111x",
		"0000 0000 0000 0000", "4444444444444444", "10.0.0.1:443", "1.2.3.4-5", "token: 5", "tokens: 4096", "max_tokens=512", "token_count: 7", "prompt_tokens=12", "the token is invalid", "token: required",
		"password: required", "password: must be at least 8 characters long", "api_key=null", "password=${DB_PASSWORD}", "password=<your password>", "secret=***", "password=[redacted:credential]",
		"Bearer token missing", "bearer authentication", `WWW-Authenticate: Bearer realm="x"`, "basic plan", "Basic authentication", "Authorization: required", "Authorization: [redacted:authorization]",
		"cookie: chocolate", "key: value", "key=primary", "key: 550e8400-e29b-41d4-a716-446655440000", "code: invalid_request", "code=E1234567890123456", "session: expired after 3s", "auth: none", "sig: ok",
		"user@localhost", "icon@2x.png", "react@18.2.0-rc.next", "@scope/pkg@1.2.3", "git@github.com:a/b.git", "a@b", "@example.com", "ada@", "foo@bar.1", "https://h.example/@ada/x", "https://h:8080/x@y",
		"sk-learn-based-classification-model-for-text", "sk-fading-circle", "ask-me-anything-about-it-2024", "AKIA", "AKIAIOSFODNN7EXAMPL", "AKIAIOSFODNN7EXAMPLEX", "xAKIAIOSFODNN7EXAMPLE", "ghp_short", "eyJhbGciOiJIUzI1NiJ9",
		"eyJhIjoxfQ.eyJ", "-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----", "-----", "--------- BEGIN", "SKU12345678901234567890123456789012", "npm_config_registry",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36", "date: 2024-01-01 10:00", "x = y := z == w => v", "a=b&c=d", "::1", "== ==",
		"iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg==", "état: prêt à partir", "密码:没有", "author: ada", "monkey=banana12345", "primary_key: 12",
		"<password>", "<password></password>", "</password>", "<label>Password</label>", "<password>null</password>", "<p>password</p>", "a</password>", "<token>${T}</token>", "<key>a</key>", "<code>x1</code>",
		"use --password to give one", "--password, --token", "--password <secret>", "--token [file]", "--password-file x1", "--password $PW", "--token /run/x1", "--password", "--password 5", "--token=", "-- password x1", "x--password x1",
		"docker run -u 1000:1000 x", "-u ada:x1", "curl -u $U:$P h", "curl -u ada h", "curl https://h:8080", "curl -u [redacted:userinfo]", "password: |", "password: |\nnext: x", "password: |\n\n", "author token 12ab34cd56ef78",
		"the token 12ab34cd56ef", "authentication token expired", "auth: Token required", "auth: none", "1 < 2 </b> >", "a </ b",
	}
}

func TestFindLeavesOrdinaryText(t *testing.T) {
	for _, text := range negatives() {
		if found := Find(nil, []byte(text)); len(found) > 0 {
			t.Errorf("%s: %s", found[0].Kind, mark(text, found))
		}
	}
	texts := negatives()
	if n := testing.AllocsPerRun(100, func() {
		for _, text := range texts {
			FindString(nil, text)
		}
	}); n != 0 {
		t.Errorf("%v allocations where nothing is found", n)
	}
}

// Every positive is found in whatever stands around it, and what stands around it is not.
func TestFindInContext(t *testing.T) {
	for kind, texts := range positives() {
		for _, want := range texts {
			if kind == PrivateKey && !strings.Contains(want, "»") {
				continue
			}
			for _, around := range [][2]string{{"plain text ", " goes on"}, {"\n", "\n"}, {"日本 ", " 語"}, {"x, ", "\r\n"}} {
				in := around[0] + want + around[1]
				if kind == Authorization || kind == Cookie {
					in = around[0] + want + "\n" + around[1]
				}
				text := unmark.Replace(in)
				if got := mark(text, Find(nil, []byte(text))); got != in {
					t.Errorf("%s: got  %q\nwant %q", kind, got, in)
				}
			}
		}
	}
}

// What is looked at grows with the text, however it is made: counted, not timed.
func TestFindIsLinear(t *testing.T) {
	for _, unit := range []string{`\'cookie:a `, `\"authorization: a `, `\\\'set-cookie:a \'cookie:b `, "'cookie:a", "eyJaaaaaaaa-", "eyJaaaaaaaa.eyJ-", "a", "a@", "a.", "@", "=", "a=", "key=", "password=", `password="`, `\"`, "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "4111", "4111 ", "4", "eyJ", "eyJaaaaaaaa.",
		"sk-", "ghp_", "Bearer ", "basic ", "https://", "://:", "a:/@", "Cookie: ", "api key ", "[", "é", "é@", "a@b.", "ééé@ééé.éé", "%", "eyJ-", "sk-xoxd-", "password=key=", "password=)", "sid='", "key=)", "Authorization: Basic ", "</password>", "</password", "<password>x", "<a>x</password></password", "--password ", " --password x1", "--", " -u", "curl -u a:b1", "curl ", "auth token ", "auth: Token ", "auth token ab12cd34ef56gh78",
		"password: |\n", "password: |\n x\n", "password: |\n  [redacted\n", " password: |\n", "name: token", "name: ", "\"value\": ", "name: password value: "} {
		work := func(n int) int {
			f := finder{s: strings.Repeat(unit, n/len(unit))}
			f.run()
			return f.work
		}
		small, large := work(1<<14), work(1<<17)
		if large > 12*max(small, 1<<14) || large > 16<<17 {
			t.Errorf("%q: %d bytes looked at for 16 KiB, %d for 128 KiB", unit, small, large)
		}
	}
}

// Two long runs with one dot between: no word of the first may walk both again.
func TestTokensOfTwoRunsAreLinear(t *testing.T) {
	for _, n := range []int{1 << 14, 1 << 17} {
		f := finder{s: strings.Repeat("eyJaaaaaaaa-", n/24) + "." + strings.Repeat("b", n/2) + "\n"}
		f.run()
		if f.work > 8*n {
			t.Errorf("%d bytes looked at for %d", f.work, n)
		}
	}
}

func FuzzFind(f *testing.F) {
	for _, texts := range positives() {
		for _, text := range texts {
			f.Add(unmark.Replace(text))
		}
	}
	for _, text := range negatives() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fi := finder{s: text}
		fi.run()
		done := 0
		for _, m := range fi.out {
			if m.Start < done || m.End <= m.Start || m.End > len(text) {
				t.Fatalf("%q: %+v", text, fi.out)
			}
			done = m.End
		}
		// Repeated, so that a square shows: each rule may look at a byte a few times.
		long := finder{s: strings.Repeat(text, 1+(1<<15)/(len(text)+1))}
		long.run()
		if long.work > 20*len(long.s)+1000 {
			t.Fatalf("%d bytes looked at for %d", long.work, len(long.s))
		}
		if fmt.Sprint(Find(nil, []byte(text))) != fmt.Sprint(fi.out) {
			t.Fatal("another call finds other things")
		}
	})
}
