// Command corral-slurm emulates the commands of Slurm: it acts as the command whose name was used to call it. `corral
// shim slurm DIR` creates a folder of links to it.
package main

import (
	"os"

	"github.com/corral-pilot/corral/internal/shim/slurm"
)

func main() {
	os.Exit(slurm.Main(os.Args, slurm.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
