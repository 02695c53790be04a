//go:build !unix

package main

import "time"

// processTime is the processor time that this process has used; 0 where that is
// not known.
func processTime() time.Duration { return 0 }
