package gridsite_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// atOnce is how many tests run side by side. Most of them wait, for Slurm or for a walltime, and compute nothing.
const atOnce = "6"

// atEnd ends what tests of sites share.
var atEnd = func() error { return nil }

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err) // unreachable: package testing has this flag
	}
	status := m.Run()
	if err := atEnd(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}
