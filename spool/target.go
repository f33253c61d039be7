package spool

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// target is a bucket URL, taken apart.
type target struct {
	// dir is the directory of a file URL; the others are for S3.
	dir            string
	bucket, prefix string
	query          url.Values
	pathStyle      bool
}

// s3Params are the parameters of an S3 URL.
var s3Params = []string{"region", "endpoint", "profile", "use_path_style", "dualstack", "fips", "ssetype", "kmskeyid"}

// parseTarget reads a bucket URL. Its errors quote no part of the URL in which a secret
// could stand.
func parseTarget(raw string) (*target, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: the bucket URL cannot be parsed", ErrOptions) // err would quote it
	}
	switch {
	case raw == "":
		return nil, fmt.Errorf("%w: no bucket URL (want file:///dir or s3://bucket/prefix)", ErrOptions)
	case u.User != nil:
		return nil, fmt.Errorf("%w: a bucket URL must not hold credentials; set AWS_ACCESS_KEY_ID and so on", ErrOptions)
	case u.Fragment != "" || u.Opaque != "":
		return nil, fmt.Errorf("%w: the bucket URL is not of the form file:///dir or s3://bucket/prefix", ErrOptions)
	case u.Scheme == "file":
		return fileTarget(u)
	case u.Scheme == "s3":
		return s3Target(u)
	}
	return nil, fmt.Errorf("%w: bucket URL of an unknown scheme (want file:///dir or s3://bucket/prefix)", ErrOptions)
}

func fileTarget(u *url.URL) (*target, error) {
	if (u.Host != "" && u.Host != "localhost") || !path.IsAbs(u.Path) || u.RawQuery != "" {
		return nil, fmt.Errorf("%w: a file URL is file:///dir, with an absolute path and nothing else", ErrOptions)
	}
	return &target{dir: filepath.FromSlash(u.Path)}, nil
}

func s3Target(u *url.URL) (*target, error) {
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("%w: the parameters of the bucket URL cannot be parsed", ErrOptions)
	}
	for name, values := range q {
		if !slices.Contains(s3Params, name) || len(values) != 1 {
			return nil, fmt.Errorf("%w: parameter %.40q of the bucket URL is unknown or repeated (want %s)", ErrOptions, name, strings.Join(s3Params, ", "))
		}
	}
	t := &target{bucket: u.Host, query: q}
	if t.bucket == "" {
		return nil, fmt.Errorf("%w: the bucket URL names no bucket", ErrOptions)
	}
	if p := strings.Trim(path.Clean("/"+u.Path), "/"); p != "" {
		t.prefix = p + "/"
	}
	if err := checkEndpoint(q.Get("endpoint")); err != nil {
		return nil, err
	}
	// Most servers other than Amazon's know buckets by path only.
	t.pathStyle = q.Get("endpoint") != ""
	if v := q.Get("use_path_style"); v != "" {
		if t.pathStyle, err = strconv.ParseBool(v); err != nil {
			return nil, fmt.Errorf("%w: use_path_style is neither true nor false", ErrOptions)
		}
	}
	return t, nil
}

func checkEndpoint(raw string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("%w: the endpoint is not http://host or https://host", ErrOptions)
	}
	if u.User != nil || u.RawQuery != "" {
		return fmt.Errorf("%w: the endpoint must not hold credentials or parameters", ErrOptions)
	}
	return nil
}

func (t *target) open(ctx context.Context) (store, error) {
	if t.dir != "" {
		return openDir(t.dir)
	}
	return openS3(ctx, t)
}
