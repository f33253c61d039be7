// Package replay asks several backends about the same recorded decisions and yields
// what each answered.
//
// Steps of [Run]:
//
//  1. Rows of one request are put together and requests are read in blocks.
//  2. When a scenario is seen for the first time, each lane's first call on it is timed
//     and kept apart as cold, then the lane is warmed up with calls that are not kept.
//  3. Every block is asked to every lane. The order of the lanes is drawn under the
//     plan's seed and balanced: in as many blocks as there are lanes, every lane has
//     every place once, so that none always runs first, or always after the one that
//     leaves the most garbage.
//  4. A sample of each scenario is set aside and, at the end, asked again several times,
//     with an explanation, for the audit.
//
// A timeout, an error, a panic and an answer outside the allowed actions are outcomes
// like any other and stay in the denominator. Outcomes of a lane come in the order of
// the snapshots, so that lanes and labels pair by a merge.
//
// The package owns the "recorded" lane, the only code that sees a snapshot's answer
// beside what backends answer; backends get a decision.Request, which has no room for
// it. Each lane has copies of the requests and answers of its own, so that what one
// backend does to them reaches no other. It reads and writes no file, opens no backend and scores nothing. It runs one
// request at a time (a closed loop of one); open-loop schedules are not here. Warm-up
// calls use the first requests that are measured later: a backend that caches answers
// has those few in its cache. CPU time is that of the process: garbage that one lane
// leaves may be collected on the next one's account, which the balanced order evens out.
package replay
