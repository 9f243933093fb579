package main

// A figure is meaningless without its machine, so every report begins with it. Values that cannot be read are omitted.

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/kit/version"
)

// A machine describes where, with which software and when a measurement was made.
type machine struct {
	fileSystem string
	load       string
	at         time.Time
}

// thisMachine describes this machine before a measurement; dir is on the file system to be measured.
func thisMachine(dir string) machine {
	return machine{fileSystem: fileSystemOf(read("/proc/self/mounts"), dir), load: loadNow(), at: time.Now().UTC()}
}

// String describes the machine after the measurement: the load at that time is included.
func (m machine) String() string {
	return fmt.Sprintf("corral %s, %s; %d cpus (%s), Linux %s, %s; load %s before, %s after; %s",
		version.String(), runtime.Version(), runtime.NumCPU(), modelOf(read("/proc/cpuinfo")),
		strings.TrimSpace(read("/proc/sys/kernel/osrelease")), m.fileSystem, m.load, loadNow(),
		m.at.Format("2006-01-02 15:04 UTC"))
}

// read returns the content of a kernel file, or nothing: the report is useful without it.
func read(name string) string {
	b, _ := os.ReadFile(name)
	return string(b)
}

// loadNow returns the load average of the last minute.
func loadNow() string {
	load, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	return load
}

// modelOf returns the name of the first processor, or the architecture if the kernel has no name.
func modelOf(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// fileSystemOf returns the type of dir's file system, by the longest mount point above it. Figures for a tmpfs and a
// disk are not comparable.
func fileSystemOf(mounts, dir string) string {
	found, point := "unknown", ""
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) < 3 || len(f[1]) < len(point) {
			continue
		}
		if inside, err := filepath.Rel(f[1], dir); err == nil && filepath.IsLocal(inside) {
			found, point = f[2], f[1]
		}
	}
	return found
}
