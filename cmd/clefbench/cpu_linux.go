package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadClock reads the processor time of the current thread, for the recorder.
func threadClock() func() time.Duration { return threadTime }

func threadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
