//go:build race

package expr

// raceEnabled: the race detector makes sync.Pool drop items at random, so allocations
// cannot be counted under it.
const raceEnabled = true
