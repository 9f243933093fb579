package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/version"
)

// A machine is where and with what was measured.
type machine struct {
	at         time.Time
	corral     string
	golang     string
	cpus       int
	model      string
	kernel     string
	fileSystem string
	load       [2]string // before and after
}

// thisMachine describes the machine; dir is on the file system that is measured.
func thisMachine(dir string) machine {
	return machine{
		at: time.Now().UTC(), corral: version.String(), golang: runtime.Version(), cpus: runtime.NumCPU(),
		model: modelOf(read("/proc/cpuinfo")), kernel: strings.TrimSpace(read("/proc/sys/kernel/osrelease")),
		fileSystem: fileSystemOf(read("/proc/self/mounts"), dir), load: [2]string{loadNow()},
	}
}

// read returns what a file of the kernel says, or nothing: a report without it is as good.
func read(name string) string {
	b, _ := os.ReadFile(name)
	return string(b)
}

func loadNow() string {
	load, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	return load
}

func modelOf(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// fileSystemOf returns the type of the file system that dir is on, by the longest mount point above it.
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

func (m machine) String() string {
	return fmt.Sprintf("corral %s, %s; %d cpus (%s), Linux %s, %s; load %s before, %s after; %s",
		m.corral, m.golang, m.cpus, m.model, m.kernel, m.fileSystem, m.load[0], m.load[1], m.at.Format("2006-01-02 15:04 UTC"))
}
