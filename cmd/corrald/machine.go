package main

// What this machine is to the site local: its architecture, for the pilot that runs here, and its size, which the batch
// system fork hands out whole, unless --machine-cpus says otherwise.

import (
	"cmp"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/nodecheck"
)

// thisMachine is the architecture of this machine as uname -m names it.
func thisMachine() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return runtime.GOARCH // unreachable: uname fails only for a bad address
	}
	return strings.TrimRight(string(u.Machine[:]), "\x00")
}

// machineOf is this machine as a queue: the batch system fork gives out all of its memory, and so many cpus; 0: all.
func machineOf(cpus int) corral.SiteQueue {
	q := corral.SiteQueue{CPUs: cmp.Or(cpus, runtime.NumCPU())}
	if mib, err := nodecheck.MemoryMiB(os.DirFS("/")); err == nil {
		q.MemoryMiB = mib
	}
	return q
}
