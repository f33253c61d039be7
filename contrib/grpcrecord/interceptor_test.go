package grpcrecord_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/clefbench/clefbench/contrib/grpcrecord"
	"github.com/clefbench/clefbench/decision"
	"github.com/clefbench/clefbench/recorder"
	"github.com/clefbench/clefbench/snapshot"
)

// memory is a sink that keeps clones.
type memory struct {
	mu   sync.Mutex
	rows []*snapshot.Snapshot
}

func (m *memory) Append(s *snapshot.Snapshot) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows = append(m.rows, s.Clone())
	return nil
}
func (*memory) Flush(snapshot.Ledger) error      { return nil }
func (*memory) Close(_, _ snapshot.Ledger) error { return nil }

// service is the standard health service with a Check of the test's own.
type service struct {
	health.UnimplementedHealthServer
	check func(ctx context.Context, name string) error
}

func (s *service) Check(ctx context.Context, q *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	if err := s.check(ctx, q.Service); err != nil {
		return nil, err
	}
	return &health.HealthCheckResponse{Status: health.HealthCheckResponse_SERVING}, nil
}

// serve runs the service behind the interceptor on a connection in memory; panics are
// caught outside of it, as a recovery interceptor does.
func serve(t testing.TB, check func(context.Context, string) error, interceptors ...grpc.UnaryServerInterceptor) health.HealthClient {
	t.Helper()
	recovery := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = status.Errorf(codes.Internal, "recovered: %v", p)
			}
		}()
		return next(ctx, req)
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(append([]grpc.UnaryServerInterceptor{recovery}, interceptors...)...))
	health.RegisterHealthServer(server, &service{check: check})
	lis := bufconn.Listen(1 << 20)
	go server.Serve(lis)
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return health.NewHealthClient(conn)
}

func newRecorder(t testing.TB, sink recorder.Sink, o recorder.Options) *recorder.Recorder {
	t.Helper()
	o.EntityKey = []byte("0123456789abcdef")
	r, err := recorder.New(sink, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(context.Background()) })
	return r
}

func intercept(t testing.TB, r *recorder.Recorder, o grpcrecord.Options) grpc.UnaryServerInterceptor {
	t.Helper()
	i, err := grpcrecord.UnaryServerInterceptor(r, o)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func closeNow(t *testing.T, r *recorder.Recorder) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestCallBecomesRow(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, recorder.Options{Capture: recorder.Capture{Input: true, Output: true, Fields: []recorder.CaptureField{
		{Name: "headers.X-Tenant", Type: decision.String}, {Name: "headers.x-absent", Type: decision.String}, {Name: "path", Type: decision.String}}}})
	marshal := func(m any) ([]byte, error) { return proto.Marshal(m.(proto.Message)) }
	client := serve(t, func(ctx context.Context, name string) error {
		rec := recorder.FromContext(ctx)
		rec.SetScenario("access")
		d := rec.Decision("")
		d.SetActions("allow", "deny")
		d.Choose("allow")
		return nil
	}, intercept(t, r, grpcrecord.Options{EntityKey: "X-User", Marshal: marshal}))
	ctx := metadata.AppendToOutgoingContext(context.Background(), "x-tenant", "a", "x-tenant", "b", "x-user", "ada", "authorization", "Bearer abc123secret")
	if _, err := client.Check(ctx, &health.HealthCheckRequest{Service: "hello"}); err != nil {
		t.Fatal(err)
	}
	closeNow(t, r)
	if len(sink.rows) != 1 {
		t.Fatalf("%d rows", len(sink.rows))
	}
	s := sink.rows[0]
	if s.Scenario != "access" || s.Action != "allow" || s.Status != decision.OK || len(s.Candidates) != 2 || !s.Entity.Set || !s.Latency.Set {
		t.Errorf("got %+v", s)
	}
	if s.Attrs.Get("headers.X-Tenant").Str() != "a, b" || s.Attrs.Get("path").Str() != "/grpc.health.v1.Health/Check" || !s.Attrs.Get("headers.x-absent").IsNull() {
		t.Errorf("attributes %v", s.Attrs.Values)
	}
	var in health.HealthCheckRequest
	var out health.HealthCheckResponse
	if proto.Unmarshal(s.Input, &in) != nil || in.Service != "hello" || proto.Unmarshal(s.Output, &out) != nil || out.Status != health.HealthCheckResponse_SERVING {
		t.Errorf("bodies %q and %q", s.Input, s.Output)
	}
	if all := fmt.Sprintf("%+v", s); strings.Contains(all, "abc123secret") || strings.Contains(all, "ada") {
		t.Error("a credential or the raw entity stands in the row")
	}
}

func TestFailedCalls(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status decision.Status
		code   string
	}{
		"a status":       {status.Error(codes.Unavailable, "down"), decision.Error, "grpc-unavailable"},
		"a deadline":     {status.Error(codes.DeadlineExceeded, "late"), decision.Timeout, "grpc-deadline-exceeded"},
		"a Go deadline":  {context.DeadlineExceeded, decision.Timeout, "grpc-deadline-exceeded"},
		"a plain error":  {errors.New("no"), decision.Error, "grpc-unknown"},
		"a wrapped one":  {fmt.Errorf("x: %w", status.Error(codes.NotFound, "y")), decision.Error, "grpc-not-found"},
		"a code unheard": {status.Error(99, "z"), decision.Error, "grpc-code99"},
	} {
		t.Run(name, func(t *testing.T) {
			sink := &memory{}
			r := newRecorder(t, sink, recorder.Options{Scenario: "s"})
			client := serve(t, func(ctx context.Context, _ string) error {
				recorder.FromContext(ctx).Decision("answered").Choose("allow")
				recorder.FromContext(ctx).Decision("open")
				return c.err
			}, intercept(t, r, grpcrecord.Options{}))
			_, err := client.Check(context.Background(), &health.HealthCheckRequest{})
			bare := serve(t, func(context.Context, string) error { return c.err })
			if _, want := bare.Check(context.Background(), &health.HealthCheckRequest{}); status.Code(err) != status.Code(want) || err.Error() != want.Error() {
				t.Errorf("the client got %v, want %v", err, want)
			}
			closeNow(t, r)
			if len(sink.rows) != 2 {
				t.Fatalf("%d rows", len(sink.rows))
			}
			if a := sink.rows[0]; a.Status != decision.OK || a.Action != "allow" {
				t.Errorf("an answer was overwritten: %+v", a)
			}
			if b := sink.rows[1]; b.Status != c.status || b.ErrorCode != c.code {
				t.Errorf("got %v %q, want %v %q", b.Status, b.ErrorCode, c.status, c.code)
			}
		})
	}
}

func TestPanicPassesOn(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, recorder.Options{Scenario: "s"})
	client := serve(t, func(ctx context.Context, name string) error { panic("oh " + name) }, intercept(t, r, grpcrecord.Options{}))
	if _, err := client.Check(context.Background(), &health.HealthCheckRequest{Service: "no"}); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "oh no") {
		t.Errorf("got %v", err)
	}
	closeNow(t, r)
	if len(sink.rows) != 1 || sink.rows[0].ErrorCode != recorder.CodePanic {
		t.Errorf("rows %+v", sink.rows)
	}
}

// The recording's own trouble is none of the call's.
func TestRecordingFails(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, recorder.Options{Scenario: "s", Capture: recorder.Capture{Input: true, Output: true}})
	client := serve(t, func(ctx context.Context, name string) error {
		recorder.FromContext(ctx).Decision("").Choose("allow")
		return nil
	}, intercept(t, r, grpcrecord.Options{Marshal: func(m any) ([]byte, error) {
		if _, ok := m.(*health.HealthCheckResponse); ok {
			return nil, errors.New("no")
		}
		panic("no")
	}}))
	if _, err := client.Check(context.Background(), &health.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	r.SetRecording(false)
	if _, err := client.Check(context.Background(), &health.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	closeNow(t, r)
	if len(sink.rows) != 1 || sink.rows[0].Input != nil || sink.rows[0].Output != nil || r.Stats().Bypassed != 1 {
		t.Errorf("rows %+v, stats %+v", sink.rows, r.Stats())
	}
	none := serve(t, func(ctx context.Context, _ string) error {
		recorder.FromContext(ctx).Decision("").Choose("allow")
		return nil
	}, intercept(t, nil, grpcrecord.Options{Marshal: func(any) ([]byte, error) { panic("asked without a recorder") }}))
	if _, err := none.Check(context.Background(), &health.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
}

func TestConcurrentCalls(t *testing.T) {
	sink := &memory{}
	r := newRecorder(t, sink, recorder.Options{Scenario: "s", Capture: recorder.Capture{Fields: []recorder.CaptureField{{Name: "headers.n", Type: decision.Int}}}})
	client := serve(t, func(ctx context.Context, name string) error {
		recorder.FromContext(ctx).Decision("").Choose(name)
		return nil
	}, intercept(t, r, grpcrecord.Options{}))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 50 {
				n := fmt.Sprint(i*50 + j)
				ctx := metadata.AppendToOutgoingContext(context.Background(), "n", n)
				if _, err := client.Check(ctx, &health.HealthCheckRequest{Service: n}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	closeNow(t, r)
	seen := map[string]bool{}
	for _, s := range sink.rows {
		if n := s.Attrs.Get("headers.n").String(); n != s.Action || seen[n] {
			t.Errorf("metadata %s beside action %s", n, s.Action)
		}
		seen[s.Action] = true
	}
	if len(seen) != 200 {
		t.Errorf("%d calls were recorded", len(seen))
	}
}

func TestOptionsAreChecked(t *testing.T) {
	r := newRecorder(t, &memory{}, recorder.Options{})
	bin := newRecorder(t, &memory{}, recorder.Options{Capture: recorder.Capture{Fields: []recorder.CaptureField{{Name: "headers.x-Bin", Type: decision.String}}}})
	for name, err := range map[string]error{
		"binary entity":   second(grpcrecord.UnaryServerInterceptor(r, grpcrecord.Options{EntityKey: "user-bin"})),
		"binary metadata": second(grpcrecord.UnaryServerInterceptor(bin, grpcrecord.Options{})),
	} {
		if !errors.Is(err, grpcrecord.ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := recorder.New(&memory{}, recorder.Options{Capture: recorder.Capture{Fields: []recorder.CaptureField{{Name: "headers.authorization", Type: decision.String}}}})
	if !errors.Is(err, recorder.ErrOptions) {
		t.Errorf("a list that names a credential: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func ExampleUnaryServerInterceptor() {
	r, err := recorder.New(&memory{}, recorder.Options{Scenario: "access", Capture: recorder.Capture{
		Fields: []recorder.CaptureField{{Name: "headers.x-tenant", Type: decision.String}}}})
	if err != nil {
		panic(err)
	}
	interceptor, err := grpcrecord.UnaryServerInterceptor(r, grpcrecord.Options{})
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(interceptor))
	fmt.Println(reflect.TypeOf(server))
	// Output:
	// *grpc.Server
}

func BenchmarkInterceptor(b *testing.B) {
	r := newRecorder(b, &memory{}, recorder.Options{Scenario: "s"})
	info := &grpc.UnaryServerInfo{FullMethod: "/s/m"}
	handler := func(ctx context.Context, req any) (any, error) {
		recorder.FromContext(ctx).Decision("").Choose("allow")
		return req, nil
	}
	i := intercept(b, r, grpcrecord.Options{})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			handler(context.Background(), nil)
		}
	})
	b.Run("recorded", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			i(context.Background(), nil, info, handler)
		}
	})
}
