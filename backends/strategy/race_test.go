//go:build race

package strategy

// raceEnabled: the race detector makes sync.Pool drop items at random, so allocations
// cannot be counted under it.
const raceEnabled = true
