//go:build !linux

package main

import "time"

// threadClock is nil: the processor time of a thread is not measured on this system.
func threadClock() func() time.Duration { return nil }

// processClock is nil for the same reason.
func processClock() func() time.Duration { return nil }
