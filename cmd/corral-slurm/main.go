// Command corral-slurm emulates the commands of Slurm: it acts as the command by whose name it is called. `corral shim
// slurm DIR` creates a folder of links to it.
package main

import (
	"os"

	"github.com/corral-pilot/corral/internal/shim/slurm"
)

func main() {
	os.Exit(slurm.Main(os.Args, slurm.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
