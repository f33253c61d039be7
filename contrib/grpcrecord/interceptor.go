package grpcrecord

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
)

// ErrOptions is wrapped by every error of [UnaryServerInterceptor].
var ErrOptions = errors.New("grpcrecord options")

// Options configure the interceptor; the zero value records no entity and no bodies.
type Options struct {
	// EntityKey is the metadata key that says who calls; its value is stored as a keyed
	// hash only, for which the recorder needs its Options.EntityKey.
	EntityKey string
	// Marshal, when set, makes the bytes of request and response that are stored where the
	// capture list allows input and output: proto.MarshalOptions or protojson, as the
	// backends of a replay want it. It runs on the caller's goroutine; an error of it
	// leaves the body out.
	Marshal func(message any) ([]byte, error)
}

// UnaryServerInterceptor returns an interceptor that puts a recording into the context of
// each call, fills it with the metadata that the recorder's capture list names
// (headers.NAME) and the full method (path), and hands the rows over when the method has
// returned. It changes nothing of the call: a panic passes on, with its own stack, and
// leaves an error behind.
//
// A call that fails gives its decisions that are still open the status that its code
// stands for, with an error code of grpc- and the code's name in lower case, as in
// grpc-deadline-exceeded: timeout for DeadlineExceeded, denied never (a refusal is the
// decision's own to tell), error for all others.
func UnaryServerInterceptor(r *recorder.Recorder, o Options) (grpc.UnaryServerInterceptor, error) {
	if strings.HasSuffix(strings.ToLower(o.EntityKey), "-bin") {
		return nil, fmt.Errorf("%w: binary metadata %q cannot be the entity", ErrOptions, o.EntityKey)
	}
	c := &capture{r: r, o: o}
	for _, f := range r.Schema().Fields() {
		key, ok := strings.CutPrefix(f.Name, "headers.")
		switch {
		case f.Name == "path":
			c.path = true
		case !ok:
		case strings.HasSuffix(strings.ToLower(key), "-bin"):
			return nil, fmt.Errorf("%w: binary metadata %q cannot be captured", ErrOptions, f.Name)
		default:
			c.keys = append(c.keys, captured{f.Name, strings.ToLower(key)})
		}
	}
	return c.intercept, nil
}

type captured struct{ attr, key string }

type capture struct {
	r    *recorder.Recorder
	o    Options
	keys []captured
	path bool
}

func (c *capture) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	ctx, rec := c.r.Start(ctx)
	if rec == nil {
		return handler(ctx, req)
	}
	c.begin(ctx, rec, req, info)
	returned := false
	// No recover: a panic keeps its own stack on the way up.
	defer func() {
		if !returned {
			rec.Abort(ctx)
			return
		}
		c.end(ctx, rec, resp, err)
	}()
	resp, err = handler(ctx, req)
	returned = true
	return resp, err
}

func (c *capture) begin(ctx context.Context, rec *recorder.Recording, req any, info *grpc.UnaryServerInfo) {
	if c.path {
		rec.SetAttr("path", decision.StringValue(info.FullMethod))
	}
	md, _ := metadata.FromIncomingContext(ctx)
	for _, k := range c.keys {
		if vs := md.Get(k.key); len(vs) > 0 {
			rec.SetAttr(k.attr, decision.StringValue(strings.Join(vs, ", ")))
		}
	}
	if c.o.EntityKey != "" {
		if vs := md.Get(c.o.EntityKey); len(vs) > 0 {
			rec.SetEntity(vs[0])
		}
	}
	if body, ok := c.marshal(req); ok {
		rec.SetInput(body)
	}
}

func (c *capture) end(ctx context.Context, rec *recorder.Recording, resp any, err error) {
	if err != nil {
		s := status.Convert(status.FromContextError(err).Err())
		if known, ok := status.FromError(err); ok {
			s = known
		}
		outcome := decision.Error
		if s.Code() == codes.DeadlineExceeded {
			outcome = decision.Timeout
		}
		rec.FailOpen(outcome, "grpc-"+codeName(s.Code()), s.Message())
	} else if body, ok := c.marshal(resp); ok {
		rec.SetOutput(body)
	}
	rec.End(ctx)
}

// marshal contains what the given function does: a recording that fails fails nothing.
func (c *capture) marshal(message any) (body []byte, ok bool) {
	if c.o.Marshal == nil {
		return nil, false
	}
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	body, err := c.o.Marshal(message)
	return body, err == nil
}

// codeName is deadline-exceeded of DeadlineExceeded.
func codeName(c codes.Code) string {
	var b strings.Builder
	for i, r := range c.String() {
		switch {
		case unicode.IsUpper(r) && i > 0:
			b.WriteByte('-')
		case !unicode.IsLetter(r) && !unicode.IsDigit(r): // Code(99)
			continue
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
