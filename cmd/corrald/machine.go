package main

// This file determines the properties of this machine for the site local: its architecture, for the pilot that runs
// here, and its size. The batch system fork may use the whole machine, unless --machine-cpus sets another number of
// CPUs.

import (
	"cmp"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/nodecheck"
)

// thisMachine returns the architecture of this machine, as printed by uname -m.
func thisMachine() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return runtime.GOARCH // unreachable: uname fails only for a bad address
	}
	return strings.TrimRight(string(u.Machine[:]), "\x00")
}

// machineOf returns a description of this machine as a queue: the batch system fork may use all of its memory, and the
// given number of CPUs; 0: all CPUs.
func machineOf(cpus int) corral.SiteQueue {
	q := corral.SiteQueue{CPUs: cmp.Or(cpus, runtime.NumCPU())}
	if mib, err := nodecheck.MemoryMiB(os.DirFS("/")); err == nil {
		q.MemoryMiB = mib
	}
	return q
}
