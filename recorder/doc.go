// Package recorder is the flight recorder of decisions: it watches a service decide,
// and keeps one [snapshot.Snapshot] a decision, without slowing or breaking the service.
//
// Typical steps:
//
//  1. Open a [Sink]: snapshot/arrowfile has one that writes segments.
//  2. [New] with a [Capture] list: what is not on the list is not recorded, credentials
//     cannot be on it, and each attribute has a type and a redaction.
//  3. Put [Recorder.Middleware] around an http.Handler, whose code says by way of
//     [FromContext] what it chose among which candidates; or [Recorder.Wrap] around a
//     decision.Backend, which needs no further code; or call [Recorder.Record]. For what
//     is not HTTP there is [Recorder.Start], for services that log their decisions
//     [NewSlogHandler].
//  4. [Recorder.Close] with a deadline when the service ends.
//
// # What the caller pays
//
// The caller's goroutine copies what the list allows into memory that is there already:
// a slab that its processor has to itself, and that goes to the recorder's one goroutine
// whole. There redaction, hashing, validation and the sink run. A hand-over costs two to
// three times a bare copy of the row, allocates nothing, and callers in parallel do not
// wait for each other; strings are not copied, and are held until the sink has the row. A
// full queue is a counted drop, never a wait ([PolicyBlock] excepted).
// A panic of the recorder's own code, of a function in its options or of the sink ends
// in the recorder; a panic of the handler or backend passes through and is recorded.
// Every method of a nil [Recorder], [Recording] or [Decision] does nothing, so that code
// which records also runs without a recorder.
//
// # The ledger
//
// Every row that is offered is written, sampled out, or dropped for a reason that is
// counted: offered = written + sampled_out + sum of dropped. The rows of a request are
// kept or lost together, and the ledger counts requests beside rows: each hand-over is
// one. (The total that the sink gets at Close counts written ones as a reader of the file
// does, by request_id.) Requests of one goroutine are written in its order.
// [Recorder.Watermark] says how many rows the sink has flushed; only those are safe. At Close the ledger must close, or the error says so.
//
// # Sampling
//
// Options.SampleRate and [Sampling] keep or leave whole requests, and give all rows of a
// request one factor of their keep probability: 1 where a condition of the sampling is
// met, else the head rate. It follows from what the request is and from the options, not
// from which draw kept it; weighted by 1/keep_prob, estimates over the kept rows are
// those over all that was offered.
//
// # Shadows and the kill switch
//
// A [Shadow] asks a candidate backend about the same requests, off the caller's path;
// its doc says what its rows look like and weigh. [Recorder.SetRecording],
// Options.KillFile and [Recorder.AdminHandler] switch recording and shadows off at run
// time. What passes by then is counted as dropped for the reason switched-off: with its
// rows where the call shows how many they are, else with one row a request, since nobody
// knows how many decisions the handler made. Those counts stand in the segment that was
// open at the time.
//
// # Credentials
//
// A capture list that names a credential is refused ([Capture] says what counts as one).
// Error texts, in rows, in [Stats] and in the log, lose what can be told from the text
// around it: queries, fragments and userinfo of URLs, what follows Bearer and Basic, the
// value beside a name that no capture list may hold (api_key=x, "token": "x",
// Authorization: x), and tokens of a few well-known shapes. Not found are a secret with
// nothing beside it that says so ("login of ada with x failed"), one in the path of a URL,
// the second word of an unquoted password, a lower-case word after "Basic" or after a
// word that also begins ordinary messages ("session: x", "code=x"), and one that is
// encoded otherwise. Errors that the recorder returns are the sink's own, untouched.
//
// In stored bodies, in attributes that are strings and kept, in params, tapes and error
// texts, what looks like a secret is replaced by a mark such as [redacted:jwt]: keys and
// tokens by their documented prefixes, JWTs, private keys, values beside the names of
// credentials, Authorization and Cookie headers, passwords in URLs, card numbers, mail
// addresses. JSON stays JSON, and the row lists the places. It happens on the recorder's
// own goroutine and copy; when it fails, the request's rows are dropped and counted as
// redaction-failed. Not found is what has no shape and no name beside it, and what is
// encoded otherwise than in JSON strings and percent escapes: a capture list that leaves
// something out is better than a search for it. docs/redaction.md says what is found, what
// is not, and what becomes of bodies that do not parse or were cut. Capture.RawBodies and
// CaptureField.Raw switch it off, which the segments say.
//
// # Limitations
//
// What a handler reads of the request body is what the input is: a handler that stops
// early leaves a truncated input, marked as such, without a digest. Between hand-over
// and flush rows stand in memory: a killed process loses them, at most
// Options.FlushInterval's worth. An attribute that is masked or hashed may stand in a
// recorded body as well; only RedactBody takes it out there. When the
// sink takes some rows of a request and refuses the next, the former stay written.
// After a Close that ran out of time, rows that the sink had taken but not flushed are
// counted as dropped though they may be in its file. http.MaxBytesReader cannot tell the
// server through the middleware's writer to close the connection; the limit itself holds.
// Rotation by size and time, files and recovery are the sink's business.
package recorder
