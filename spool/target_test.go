package spool

import (
	"errors"
	"strings"
	"testing"
)

func TestParseTarget(t *testing.T) {
	for raw, want := range map[string]target{
		"file:///var/spool/x":          {dir: "/var/spool/x"},
		"file://localhost/var/spool/x": {dir: "/var/spool/x"},
		"s3://b":                       {bucket: "b"},
		"s3://b/":                      {bucket: "b"},
		"s3://b/p/../q//r/?region=eu":  {bucket: "b", prefix: "q/r/"},
		"s3://b/p?endpoint=http%3A%2F%2F127.0.0.1%3A7070":                      {bucket: "b", prefix: "p/", pathStyle: true},
		"s3://b/p?endpoint=http://127.0.0.1:7070&use_path_style=false":         {bucket: "b", prefix: "p/"},
		"s3://b?use_path_style=true&ssetype=aws:kms&kmskeyid=arn:aws:kms:x/y1": {bucket: "b", pathStyle: true},
	} {
		got, err := parseTarget(raw)
		if err != nil || got.dir != want.dir || got.bucket != want.bucket || got.prefix != want.prefix || got.pathStyle != want.pathStyle {
			t.Errorf("%s: %+v, %v", raw, got, err)
		}
	}
}

// What is refused is refused without repeating a secret.
func TestParseTargetRefuses(t *testing.T) {
	for _, raw := range []string{
		"", "bucket", "/dir", "http://b", "gs://b", "mem://", "file://host/dir", "file:dir", "file:///d?x=hunter2", "file:///d#hunter2",
		"s3://", "s3:///p", "s3://AKIA:hunter2@b/p", "s3://hunter2@b", "s3://b?access_key=hunter2", "s3://b?X-Amz-Signature=hunter2",
		"s3://b?region=a&region=hunter2", "s3://b?endpoint=hunter2", "s3://b?endpoint=ftp://hunter2", "s3://b?endpoint=http://u:hunter2@h",
		"s3://b?endpoint=http://h?x=hunter2", "s3://b?use_path_style=hunter2", "s3://hunter2@b:%zz", "s3://b?%zz=hunter2", "s3://b?a;hunter2",
		"file://u:hunter2@localhost/d",
	} {
		got, err := parseTarget(raw)
		if !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %+v, %v", raw, got, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error repeats it: %v", raw, err)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"file:///a", "s3://b/p?region=x", "s3://u:p@b", "s3://b?endpoint=http://h:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := parseTarget(raw)
		switch {
		case err != nil:
			if !errors.Is(err, ErrOptions) {
				t.Errorf("%q: %v", raw, err)
			}
		case (got.dir == "") == (got.bucket == ""):
			t.Errorf("%q: %+v", raw, got)
		case strings.HasPrefix(got.prefix, "/") || strings.Contains("/"+got.prefix, "/../"):
			t.Errorf("%q: prefix %q", raw, got.prefix)
		}
	})
}
