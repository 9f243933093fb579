package main

import (
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/internal/node"
	"github.com/corral-pilot/corral/internal/server"
)

// thisMachine is the architecture of this machine as uname -m names it.
func thisMachine() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return runtime.GOARCH // unreachable: uname fails only for a bad address
	}
	return strings.TrimRight(string(u.Machine[:]), "\x00")
}

// machineShape is what the batch system fork gives out: all of this machine.
func machineShape() server.Shape {
	s := server.Shape{CPUs: runtime.NumCPU()}
	if mib, err := node.MemoryMiB(os.DirFS("/")); err == nil {
		s.MemoryMiB = mib
	}
	return s
}
