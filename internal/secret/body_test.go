package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_1"

func TestBody(t *testing.T) {
	for in, want := range map[string]string{
		// JSON stays as it was but for the match, inside its string.
		`{ "b" : 1.50e+3,` + "\n\t" + `"a":["see ` + jwt + ` ok",null] }`:                  `{ "b" : 1.50e+3,` + "\n\t" + `"a":["see [redacted:jwt] ok",null] } /a/0:jwt`,
		`{"messages":[{"role":"user","content":"mail ada@example.com, bob@example.com"}]}`: `{"messages":[{"role":"user","content":"mail [redacted:email], [redacted:email]"}]} /messages/0/content:email`,
		// Escapes.
		`{"a":"ada\u0040example\u002Ecom \u00e9\n"}`:                                `{"a":"[redacted:email] \u00e9\n"} /a:email`,
		`{"a":"\ud83d\ude00 x\/ ` + jwt + `\""}`:                                    `{"a":"\ud83d\ude00 x\/ [redacted:jwt]\""} /a:jwt`,
		`{"a":"-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\n"}`:     `{"a":"[redacted:private-key]\n"} /a:private-key`,
		`{"u":"https://h/?email=ada%40example.com&x=1","n":"\t%34111111111111111"}`: `{"u":"https://h/?email=[redacted:email]&x=1","n":"\t[redacted:card]"} /u:email /n:card`,
		// Names of credentials: whatever the value.
		`{"password":"hunter2","user":{"api_key":"k","token":"","tokens":5}}`:    `{"password":"[redacted:credential]","user":{"api_key":"[redacted:credential]","token":"","tokens":5}} /password:credential /user/api_key:credential`,
		`{"pass\u0077ord":"\u0068unter2"}`:                                       `{"pass\u0077ord":"[redacted:credential]"} /password:credential`,
		`{"password":12345,"x":{"password":null,"has_password":true},"token":5}`: `{"password":"[redacted:credential]","x":{"password":null,"has_password":true},"token":5} /password:credential`,
		`{"credentials":{"user":"ada","deep":["a",{"n":1}]},"passwords":["a","b"]}`: `{"credentials":{"user":"[redacted:credential]","deep":["[redacted:credential]",{"n":1}]},"passwords":["[redacted:credential]","[redacted:credential]"]} ` +
			`/credentials/user:credential /credentials/deep/0:credential /passwords/0:credential /passwords/1:credential`,
		`{"Authorization":"Bearer x","Cookie":"a=b","key":"name","code":"invalid_request","session":{"n":"1"}}`: `{"Authorization":"[redacted:authorization]","Cookie":"[redacted:cookie]","key":"name","code":"invalid_request","session":{"n":"1"}} /Authorization:authorization /Cookie:cookie`,
		`{"sid":"38afes7a8bcd","key":"AbCdEf0123456789xY"}`:                                                     `{"sid":"[redacted:credential]","key":"[redacted:credential]"} /sid:credential /key:credential`,
		// A validator says where the input was wrong.
		`[{"loc":["body","password"],"input":"x"},{"loc":["body","mail"],"input":"y"},{"input":"z","loc":["body","password",0]}]`: `[{"loc":["body","password"],"input":"[redacted:credential]"},{"loc":["body","mail"],"input":"y"},{"input":"z","loc":["body","password",0]}] /0/input:credential`,
		// Numbers, names, depth, several values.
		`{"pan":4111111111111111,"id":4111111111111112,"f":4111111111111111.5,"m":-4111111111111111}`: `{"pan":"[redacted:card]","id":4111111111111112,"f":4111111111111111.5,"m":-4111111111111111} /pan:card`,
		`{"ada@example.com":1,"bob@example.com":{"password":"x"}}`:                                    `{"[redacted:email]":1,"[redacted:email#2]":{"password":"[redacted:credential]"}} /[redacted:email]:email /[redacted:email#2]:email /[redacted:email#2]/password:credential`,
		`{"a/b":{"c~d":"a@b.co"},"":"a@b.co"}`:                                                        `{"a/b":{"c~d":"[redacted:email]"},"":"[redacted:email]"} /a~1b/c~0d:email /:email`,
		"{\"a\":1}\n{\"b\":\"a@b.co\"}\n":                                                             "{\"a\":1}\n{\"b\":\"[redacted:email]\"}\n #1/b:email",
		`4111111111111111`:                                                                            `"[redacted:card]" :card`,
		`"a@b.co"`:                                                                                    `"[redacted:email]" :email`,
		`{"body":"{\"password\":\"hunter2\"}"}`:                                                       `{"body":"{\"password\":\"[redacted:credential]\"}"} /body:credential`,
		// Text, forms.
		`4111 1111 1111 1111`: `[redacted:card] :card`,
		`user=ada%40example.com&card=4111+1111+1111+1111&password=hunter%262&n=1`: `user=[redacted:email]&card=[redacted:card]&password=[redacted:credential]&n=1 :email :card :credential`,
		"GET / HTTP/1.1\r\nAuthorization: Bearer abc\r\n\r\n{\"password\":\"x\"}": "GET / HTTP/1.1\r\nAuthorization: [redacted:authorization]\r\n\r\n{\"password\":\"[redacted:credential]\"} :authorization :credential",
		"[INFO] login of ada@example.com":                                         "[INFO] login of [redacted:email] :email",
		`"quoted" said a@b.co`:                                                    `"quoted" said [redacted:email] :email`,
		"data: {\"t\":\"a@b.co\"}\n\ndata: [DONE]\n\n":                            "data: {\"t\":\"[redacted:email]\"}\n\ndata: [DONE]\n\n :email",
	} {
		var s Scanner
		got, found, omitted, err := s.Body([]byte(in), Whole)
		text := string(got)
		for _, f := range found {
			text += " " + f.Pointer + ":" + string(f.Kind)
		}
		if err != nil || omitted != 0 || text != want {
			t.Errorf("%s\ngives %s %v\nwant  %s", in, text, err, want)
		}
		if json.Valid([]byte(in)) && !json.Valid(got) {
			t.Errorf("%s is no JSON any more: %s", in, got)
		}
		again, more, _, err := s.Body(got, Whole)
		if len(more) > 0 || err != nil || !bytes.Equal(again, got) {
			t.Errorf("%s is replaced again: %s %v", got, again, err)
		}
	}
}

func TestBodyWithoutSecretsIsItself(t *testing.T) {
	var s Scanner
	for _, text := range append(negatives(), `{"a":[1,2.5e-7,true,null,"x\n\u00e9"],"":{}} `, "[]", " {\"deep\":[[[]]]}", `"\\"`) {
		body := []byte(text)
		got, found, _, err := s.Body(body, Whole)
		if err != nil || len(found) > 0 || len(got) != len(body) || len(body) > 0 && &got[0] != &body[0] {
			t.Errorf("%s: %s %v %v", text, got, found, err)
		}
	}
}

func TestBodyRefuses(t *testing.T) {
	deep := strings.Repeat(`{"a":`, maxDepth+1)
	for in, want := range map[string]error{
		`{"a":"` + jwt: ErrUnparsable, `{"a":1`: ErrUnparsable, `{a:1}`: ErrUnparsable, `{"a":01}`: ErrUnparsable, `[{"a":1},]`: ErrUnparsable,
		`{"a":"\x"}`: ErrUnparsable, `{"a":"\u12g4"}`: ErrUnparsable, "{\"a\":\"\n\"}": ErrUnparsable, `{"a":1} x`: ErrUnparsable, `["a" "b"]`: ErrUnparsable,
		deep: ErrUnparsable, `{"a":1.}`: ErrUnparsable, `{"a":tru}`: ErrUnparsable, `["a"`: ErrUnparsable, `{`: ErrUnparsable, ` [`: ErrUnparsable,
		"\xff\xfe": ErrBinary, "{\"a\":\"\xff\"}": ErrBinary, "\x89PNG\r\n": ErrBinary,
	} {
		var s Scanner
		if got, _, _, err := s.Body([]byte(in), Whole); !errors.Is(err, want) || got != nil {
			t.Errorf("%.40s: %.40s, %v", in, got, err)
		}
	}
	var s Scanner
	if _, _, _, err := s.Body([]byte("name: ada"), DeclaredJSON); !errors.Is(err, ErrUnparsable) {
		t.Errorf("declared JSON: %v", err)
	}
	if got, _, _, err := s.Body([]byte(" \n"), DeclaredJSON); err != nil || string(got) != " \n" {
		t.Errorf("an empty body that is declared JSON: %v", err)
	}
}

// A secret may be cut in two where a body is: JSON is refused, of other text the last
// word is left out.
func TestBodyTruncated(t *testing.T) {
	for in, want := range map[string]string{
		"a=1&token=" + jwt[:30]: "a=1&", "mail ada@exam": "mail ", "one two\nthree 日\xe6": "one two\nthree ", "oneword": "", "": "",
		"x a@b.co y": "x [redacted:email] ", `{"a":"a@b.co"}`: `{"a":"[redacted:email]"}`,
	} {
		var s Scanner
		if got, _, _, err := s.Body([]byte(in), Truncated); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	for _, in := range []string{`{"a":1`, `[{"a`, ` ["x"`} {
		var s Scanner
		if _, _, _, err := s.Body([]byte(in), Truncated); !errors.Is(err, ErrUnparsable) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestBodyListsSoMany(t *testing.T) {
	in := `["x"` + strings.Repeat(`,"a@b.co"`, MaxFindings+5) + `]`
	var s Scanner
	got, found, omitted, err := s.Body([]byte(in), Whole)
	if err != nil || len(found) != MaxFindings || omitted != 5 || bytes.Contains(got, []byte("a@b.co")) {
		t.Errorf("%d listed, %d omitted, %v", len(found), omitted, err)
	}
	long := `{"` + strings.Repeat("é", 500) + `":{"b":"a@b.co"}}`
	if _, found, _, _ = s.Body([]byte(long), Whole); len(found[0].Pointer) > maxPointer+3 {
		t.Errorf("a pointer of %d bytes", len(found[0].Pointer))
	}
}

func TestTextIsNeverRefused(t *testing.T) {
	var s Scanner
	for in, want := range map[string]string{
		"{broken a@b.co": "{broken [redacted:email]", "\xff a@b.co": "\xff [redacted:email]", `{"seed":1}`: `{"seed":1}`, "": "",
		`{"password":"x"}`: `{"password":"[redacted:credential]"}`,
	} {
		if got, found := s.Text(in); got != want || (len(found) > 0) != (in != want) {
			t.Errorf("%q: %q %v", in, got, found)
		}
	}
}

// Against encoding/json: the same texts are JSON, what is replaced leaves JSON with the
// same members, and a planted secret is gone from what a reader of JSON sees.
func FuzzBody(f *testing.F) {
	for _, texts := range positives() {
		for _, text := range texts {
			quoted, _ := json.Marshal(unmark.Replace(text))
			f.Add(fmt.Sprintf(`{"a":[%s,1],"b":"x"}`, quoted))
		}
	}
	f.Add(`{"a/~":{"password":"\u0041"},"n":4111111111111111} {"x":[]}`)
	f.Add(`user=a%40b.co&x=%zz+%`)
	f.Fuzz(func(t *testing.T, in string) {
		var s Scanner
		got, found, _, err := s.Body([]byte(in), Whole)
		if err != nil {
			if errors.Is(err, ErrUnparsable) && json.Valid([]byte(in)) && strings.Count(in, "{")+strings.Count(in, "[") < maxDepth {
				t.Fatalf("%q is JSON", in)
			}
			return
		}
		if len(found) == 0 && string(got) != in {
			t.Fatalf("%q becomes %q without a finding", in, got)
		}
		if json.Valid([]byte(in)) {
			var a, b any
			if json.Unmarshal([]byte(in), &a) == nil && json.Unmarshal(got, &b) != nil {
				t.Fatalf("%q becomes %q", in, got)
			}
			if strings.Contains(in, jwt) {
				return // it may stand there inside a longer word, where nothing tells it from one
			}
			planted := `{"x":` + in + `,"y":"` + jwt + `"}`
			clean, _, _, err := s.Body([]byte(planted), Whole)
			if err != nil || strings.Contains(string(clean), jwt) || !json.Valid(clean) {
				t.Fatalf("%q becomes %q, %v", planted, clean, err)
			}
		}
	})
}

// What a request names as a password is found where its answer repeats it.
func TestEchoes(t *testing.T) {
	var s Scanner
	scan := func(in string) string {
		got, _, _, err := s.Body([]byte(in), Whole)
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	const secretValue = "correct horse"
	answer := `{"detail":[{"loc":["body"],"msg":"too short: \u0063orrect horse!","input":"` + secretValue + `"}],"` + secretValue + `":1,"mail":"` + secretValue + `@b.co"}`
	want := `{"detail":[{"loc":["body"],"msg":"too short: [redacted:credential]!","input":"[redacted:credential]"}],"[redacted:credential]":1,"mail":"[redacted:credential]"}`
	for _, in := range []string{`{"password":"` + secretValue + `"}`, `{"password":"c\u006frrect horse"}`, `password=correct+horse&x=1`, `password: "` + secretValue + `"`} {
		s.Forget()
		if !strings.Contains(scan(answer), `"input":"`+secretValue) {
			t.Errorf("found before it was named")
		}
		if scan(in); scan(answer) != want {
			t.Errorf("after %s: %s", in, scan(answer))
		}
	}
	s.Forget()
	if scan(`{"password":"short"}`); scan("a short text") != "a short text" {
		t.Error("a short value is looked for")
	}
	for i := range 2 * maxEchoes {
		scan(fmt.Sprintf(`{"password":"long%d-long"}`, i))
	}
	if len(s.known) != maxEchoes {
		t.Errorf("%d values are remembered", len(s.known))
	}
}
