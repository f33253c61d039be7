package backends_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"net/url"

	"github.com/clefbench/clefbench/backends"
)

func TestParseSpec(t *testing.T) {
	for in, want := range map[string]backends.Spec{
		"rules:edge.yaml":              {Name: "rules", Kind: "rules", Target: "edge.yaml"},
		"v2=rules:edge-v2.yaml":        {Name: "v2", Kind: "rules", Target: "edge-v2.yaml"},
		"decide:http://127.0.0.1:8080": {Name: "decide", Kind: "decide", Target: "http://127.0.0.1:8080"},
		"recorded":                     {Name: "recorded", Kind: "recorded"},
		"prod=recorded":                {Name: "prod", Kind: "recorded"},
		"jev=systemone:https://HOST/v1?model=jev-latest&key_env=TYPESAFE_API_KEY": {Name: "jev", Kind: "systemone", Target: "https://HOST/v1",
			Options: url.Values{"model": {"jev-latest"}, "key_env": {"TYPESAFE_API_KEY"}}},
		"decide:http://h/v1?timeout=15ms":           {Name: "decide", Kind: "decide", Target: "http://h/v1", Options: url.Values{"timeout": {"15ms"}}},
		"flash:a=b.cfb":                             {Name: "flash", Kind: "flash", Target: "a=b.cfb"},
		"recorded?x=1":                              {Name: "recorded", Kind: "recorded", Options: url.Values{"x": {"1"}}},
		"@cf/cloudflare/clef-flash=decide:http://h": {Name: "@cf/cloudflare/clef-flash", Kind: "decide", Target: "http://h"},
		"m=decide:http://h?model=a%26b+c":           {Name: "m", Kind: "decide", Target: "http://h", Options: url.Values{"model": {"a&b c"}}},
		"rules:dir with space/x.yaml":               {Name: "rules", Kind: "rules", Target: "dir with space/x.yaml"},
	} {
		got, err := backends.ParseSpec(in)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("ParseSpec(%q) = %+v, %v, want %+v", in, got, err, want)
			continue
		}
		again, err := backends.ParseSpec(got.String())
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%q prints as %q, which reads as %+v, %v", in, got.String(), again, err)
		}
	}
}

func TestParseSpecRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":                           `kind ""`,
		"=rules:x":                   `name ""`,
		"a b=rules:x":                `name "a b"`,
		"rules:":                     `nothing stands after "rules:"`,
		"Rules:x":                    `kind "Rules"`,
		"1x":                         `kind "1x"`,
		"a=b=c":                      `kind "b=c"`,
		"decide:http://h?model":      "", // an option without a value is an empty value
		"decide:http://h?a=1&a=2":    `option "a" stands 2 times`,
		"decide:http://h?a=%zz":      "not of the form option=value",
		"decide:http://h?a=1;b=2":    "not of the form option=value",
		"decide:http://h?=1":         `option name ""`,
		"decide:http://h?key=K":      `option "key" would put a secret`,
		"decide:http://h?api-key=K":  `option "api-key" would put a secret`,
		"decide:http://h?key_env=s3": `option "key_env" must be the name of an environment variable`,
		"decide:http://u:p@h/v1":     "holds a user name or password",
		"rules:a\nb":                 "control character",
	} {
		_, err := backends.ParseSpec(in)
		if want == "" {
			if err != nil {
				t.Errorf("ParseSpec(%q): %v", in, err)
			}
			continue
		}
		if !errors.Is(err, backends.ErrSpec) || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseSpec(%q) = %v, want ErrSpec with %q", in, err, want)
		}
	}
}

// What looks like a secret must not come back in an error, which is logged.
func TestParseSpecDoesNotPrintSecrets(t *testing.T) {
	const secret = "sk-live-0123456789"
	for _, in := range []string{
		"decide:http://h?key=" + secret, "decide:http://h?key_env=" + secret, "decide:http://user:" + secret + "@h/v1",
		"decide:http://h?token=" + secret + "&x=%zz", "decide:http://h?authorization=" + secret + "&authorization=" + secret,
	} {
		_, err := backends.ParseSpec(in)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: error %v", in, err)
		}
	}
}

func FuzzParseSpec(f *testing.F) {
	for _, s := range []string{"rules:edge.yaml", "v2=rules:x", "jev=systemone:https://H/v1?model=m&key_env=K", "recorded", "a=b=c?d=e:f", "decide:http://u@h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		spec, err := backends.ParseSpec(s)
		if err != nil {
			if !errors.Is(err, backends.ErrSpec) {
				t.Fatalf("error %v is no ErrSpec", err)
			}
			return
		}
		again, err := backends.ParseSpec(spec.String())
		if err != nil || again.String() != spec.String() || again.Name != spec.Name || again.Target != spec.Target {
			t.Fatalf("%q prints as %q, which reads as %+v, %v", s, spec, again, err)
		}
	})
}

func ExampleParseSpec() {
	spec, err := backends.ParseSpec("jev=systemone:https://example.com/v1?model=jev-latest&key_env=TYPESAFE_API_KEY")
	if err != nil {
		panic(err)
	}
	fmt.Println(spec.Name, spec.Kind, spec.Target)
	fmt.Println("model:", spec.Options.Get("model"))
	_, err = backends.ParseSpec("jev=systemone:https://example.com/v1?key=sk-123")
	fmt.Println(err)
	// Output:
	// jev systemone https://example.com/v1
	// model: jev-latest
	// backend specification: option "key" would put a secret into the specification; use key_env=NAME, the name of an environment variable
}
