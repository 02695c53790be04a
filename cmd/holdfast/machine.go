package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// machine says what the figures were made on, as far as it is known here.
func machine() string {
	cpu, system := "", runtime.GOOS+"/"+runtime.GOARCH
	if name := procLine("/proc/cpuinfo", "model name"); name != "" {
		cpu = ", " + name
	}
	if name := procLine("/etc/os-release", "PRETTY_NAME"); name != "" {
		system = strings.Trim(name, `"`) + ", " + system
	}
	return fmt.Sprintf("Machine: %d cores%s; %s; %s.", runtime.NumCPU(), cpu, system, runtime.Version())
}

// procLine is the value of the first line "name: value" or "name=value" of a
// file of the system; "" = there is none.
func procLine(file, name string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		at := strings.IndexAny(lines.Text(), ":=")
		if at >= 0 && strings.TrimSpace(lines.Text()[:at]) == name {
			return strings.TrimSpace(lines.Text()[at+1:])
		}
	}
	return ""
}
