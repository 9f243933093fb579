package notation

import "strconv"

// An ExitCode describes how a process ended: with a status, or killed by a signal. The zero value means success.
type ExitCode struct{ Status, Signal int }

// String formats the code like Slurm: "7:0", "0:9".
func (c ExitCode) String() string { return strconv.Itoa(c.Status) + ":" + strconv.Itoa(c.Signal) }
