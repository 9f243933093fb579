package gridsitetest

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// atOnce is how many tests run side by side. Most of them wait, for Slurm or for a walltime, and compute nothing.
const atOnce = "6"

// Main is TestMain of packages whose tests wait for jobs. end ends what the tests share.
func Main(m *testing.M, end func() error) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err) // unreachable: package testing has this flag
	}
	status := m.Run()
	if err := end(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}
