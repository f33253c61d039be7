// Package proxy records the decisions of a service that speaks SystemOne, OpenAI
// Decisions or /v1/decide, by standing between the service and its clients.
//
// Steps: [New] with an upstream and a [recorder.Recorder]; [Proxy.Serve] on a listener;
// [Proxy.Shutdown], which ends accepting, waits for what is under way and hands the last
// rows over; then close the recorder. docs/formats/proxy.md says what a row holds.
//
// # What passes
//
// Every request goes to the upstream and every answer back, whatever becomes of the
// recording: path and query byte for byte, bodies byte for byte as they arrive, headers
// save those of one connection (RFC 9110, 7.6.1), trailers, informational answers,
// upgrades. Only Host is the upstream's. No redirect is followed, nothing is compressed,
// decompressed or retried. Headers keep their values, but not the letter case of their
// names nor the order of different ones, which have no meaning in HTTP.
//
// # What is recorded
//
// Bodies of decisions are copied while they pass, within a budget of memory that all
// requests share; beyond it they pass unrecorded and are counted. Once an answer has
// ended, one goroutine reads both bodies and hands the rows to the recorder: no client
// waits for it. Attempts of one decision are folded into one request.
//
// Credentials of the request are held in memory until the attempt has been read, to take
// them out of bodies that repeat them, and are never handed over.
//
// # Limitations
//
// An upstream's address is fixed. HTTP/2 is spoken to neither side. A body compressed
// otherwise than with gzip or deflate passes unrecorded. An answer that the client's
// connection could not take to its end is recorded as canceled though the upstream gave
// it. A retry is found by what its client says of it (docs/formats/proxy.md).
package proxy
