// Package grpcrecord records the decisions of gRPC services: a unary server interceptor
// that does for a call what recorder.Recorder.Middleware does for an HTTP request.
//
// Steps:
//
//  1. Make a recorder whose capture list names what is wanted: headers.NAME for a metadata
//     key, path for the full method.
//  2. Give [UnaryServerInterceptor] to grpc.NewServer.
//  3. In the method, recorder.FromContext finds the recording; the decision is said to it,
//     or made by a backend that the recorder wraps.
//
// What is not on the capture list is not recorded, and the recorder accepts no list that
// names credentials. Binary metadata (keys that end in -bin) and streaming calls are not
// captured.
package grpcrecord
