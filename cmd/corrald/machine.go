package main

// What this machine is to the site local: its architecture, for the pilot that runs here, and its size, which the batch
// system fork hands out whole.

import (
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node"
)

// thisMachine is the architecture of this machine as uname -m names it.
func thisMachine() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return runtime.GOARCH // unreachable: uname fails only for a bad address
	}
	return strings.TrimRight(string(u.Machine[:]), "\x00")
}

// wholeMachine is this machine as a queue: the batch system fork gives out all of it.
func wholeMachine() corral.SiteQueue {
	q := corral.SiteQueue{CPUs: runtime.NumCPU()}
	if mib, err := node.MemoryMiB(os.DirFS("/")); err == nil {
		q.MemoryMiB = mib
	}
	return q
}
