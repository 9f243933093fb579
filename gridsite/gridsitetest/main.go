package gridsitetest

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// atOnce is the number of tests that run in parallel. Most of them wait for Slurm or a walltime and use little
// processor time.
const atOnce = "6"

// Main is TestMain for packages whose tests wait for jobs. end releases the resources that the tests share.
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
