package spool

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	gcaws "gocloud.dev/aws"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"
)

// bucketStore is a bucket of gocloud.dev.
type bucketStore struct {
	bucket *blob.Bucket
	prefix string
	// s3 is nil for other buckets.
	s3 *s3Writer
}

// Close implements io.Closer.
func (b *bucketStore) Close() error { return b.bucket.Close() }

func (b *bucketStore) create(ctx context.Context, o *object, body *os.File) error {
	if b.s3 != nil {
		return b.s3.put(ctx, b.prefix+o.key, o, body)
	}
	return b.bucket.Upload(ctx, b.prefix+o.key, body, &blob.WriterOptions{
		IfNotExist: true, ContentType: contentType, DisableContentTypeDetection: true, Metadata: o.meta,
	})
}

func (b *bucketStore) stat(ctx context.Context, key string) (int64, string, error) {
	a, err := b.bucket.Attributes(ctx, b.prefix+key)
	if err != nil {
		return 0, "", missing(err)
	}
	return a.Size, a.Metadata[metaSum], nil
}

func (b *bucketStore) open(ctx context.Context, key string) (io.ReadCloser, error) {
	r, err := b.bucket.NewReader(ctx, b.prefix+key, nil)
	if err != nil {
		return nil, missing(err)
	}
	return r, nil
}

func missing(err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return fmt.Errorf("%w: %w", errAbsent, err)
	}
	return err
}

// s3Writer writes objects to S3 past gocloud.dev's writer, which sends bodies above 16 MiB
// in parts and every body unsigned: a kill leaves parts behind that cost money, and a byte
// changed on the way goes unnoticed. One PutObject does neither: it is whole or not there,
// and the server checks the payload against the signature and x-amz-checksum-sha256.
type s3Writer struct {
	client *s3.Client
	bucket string
	sse    types.ServerSideEncryption
	kmsKey string
}

func (w *s3Writer) put(ctx context.Context, key string, o *object, body *os.File) error {
	sum, err := hex.DecodeString(o.sum)
	if err != nil {
		return err
	}
	in := &s3.PutObjectInput{
		Bucket: &w.bucket, Key: &key, Body: body, ContentLength: &o.size,
		ContentType: aws.String(contentType), Metadata: o.meta, IfNoneMatch: aws.String("*"),
		ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(sum)), ServerSideEncryption: w.sse,
	}
	if w.kmsKey != "" {
		in.SSEKMSKeyId = &w.kmsKey
	}
	_, err = w.client.PutObject(ctx, in)
	return err
}

// openS3 opens a bucket with the credentials of the AWS default chain.
func openS3(ctx context.Context, t *target) (*bucketStore, error) {
	q := url.Values{
		// Without these the SDK complains on stderr, once a GET, of objects that another
		// writer stored without a checksum, and asks of other servers what some lack.
		"request_checksum_calculation": {"when_required"},
		"response_checksum_validation": {"when_required"},
	}
	for _, name := range []string{"region", "endpoint", "profile", "dualstack", "fips"} {
		if v := t.query.Get(name); v != "" {
			q.Set(name, v)
		}
	}
	cfg, err := gcaws.V2ConfigFromURLParams(ctx, q)
	if err != nil {
		return nil, err
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1" // the SDK wants one also for servers that have none
	}
	w := &s3Writer{bucket: t.bucket, kmsKey: t.query.Get("kmskeyid")}
	if w.sse, err = encryption(t.query.Get("ssetype")); err != nil {
		return nil, err
	}
	w.client = s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = t.pathStyle })
	bucket, err := s3blob.OpenBucket(ctx, w.client, t.bucket, nil)
	if err != nil {
		return nil, err
	}
	return &bucketStore{bucket: bucket, prefix: t.prefix, s3: w}, nil
}

func encryption(name string) (types.ServerSideEncryption, error) {
	if name == "" {
		return "", nil
	}
	for _, t := range types.ServerSideEncryption("").Values() {
		if strings.EqualFold(string(t), name) {
			return t, nil
		}
	}
	return "", fmt.Errorf("%w: unknown ssetype %s", ErrOptions, strconv.Quote(name))
}
