package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadClock reads the processor time of the current thread, for the recorder.
func threadClock() func() time.Duration { return threadTime }

func threadTime() time.Duration { return cpuTime(unix.CLOCK_THREAD_CPUTIME_ID) }

// processClock reads the processor time of all threads.
func processClock() func() time.Duration { return processTime }

func processTime() time.Duration { return cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID) }

func cpuTime(clock int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
