package replay

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the processor time that this process has used, user and system: what the
// backend's goroutines and the garbage collector cost, too.
func cpuTime() (time.Duration, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
