// Command corral-slurm stands in for the commands of Slurm: it does what the name says by
// which it is called. `corral shim slurm DIR` makes a folder of links to it.
package main

import (
	"os"

	"github.com/corral-pilot/corral/internal/shim/slurm"
)

func main() {
	os.Exit(slurm.Main(os.Args, slurm.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
