package main

// A figure without its machine says nothing, so every report begins with it. What cannot be read is left out of it.

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/kit/version"
)

// A machine is where and with what is measured, and when that began.
type machine struct {
	fileSystem string
	load       string
	at         time.Time
}

// thisMachine is this one, before anything is measured; dir is on the file system that will be.
func thisMachine(dir string) machine {
	return machine{fileSystem: fileSystemOf(read("/proc/self/mounts"), dir), load: loadNow(), at: time.Now().UTC()}
}

// String describes the machine once everything is measured: the load afterwards is part of it.
func (m machine) String() string {
	return fmt.Sprintf("corral %s, %s; %d cpus (%s), Linux %s, %s; load %s before, %s after; %s",
		version.String(), runtime.Version(), runtime.NumCPU(), modelOf(read("/proc/cpuinfo")),
		strings.TrimSpace(read("/proc/sys/kernel/osrelease")), m.fileSystem, m.load, loadNow(),
		m.at.Format("2006-01-02 15:04 UTC"))
}

// read returns what a file of the kernel says, or nothing: a report without it is as good.
func read(name string) string {
	b, _ := os.ReadFile(name)
	return string(b)
}

// loadNow is the load of the last minute.
func loadNow() string {
	load, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	return load
}

// modelOf returns the name of the first processor, or where the kernel has none the architecture.
func modelOf(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// fileSystemOf returns the type of the file system that dir is on, by the longest mount point above it. Figures of a
// tmpfs and of a disk cannot be compared.
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
