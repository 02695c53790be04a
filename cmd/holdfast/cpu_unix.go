//go:build unix

package main

import (
	"syscall"
	"time"
)

// processTime is the processor time that this process has used; 0 where that is
// not known.
func processTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
