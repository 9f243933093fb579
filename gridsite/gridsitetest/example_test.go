package gridsitetest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/gridsite/gridsitetest"
	"github.com/corral-pilot/corral/gridsite/local"
)

// The tests of a dialect contain one that runs the suite. This is the test of fork; another dialect fills in its own
// Fixture.
func ExampleTest() {
	TestConformance := func(t *testing.T) {
		t.Parallel()
		gridsitetest.Test(t, func(t testing.TB) gridsitetest.Fixture {
			return gridsitetest.OpenFork(t, local.Conn{})
		})
	}
	_ = TestConformance
}

// A test simulates a site whose file systems are full. With a testing.TB, WithCommand does the same in one line.
func ExampleInPath() {
	bin, err := os.MkdirTemp("", "bin")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(bin)
	const tar = "#!/bin/sh\necho 'No space left on device' >&2\nexit 2\n"
	if err := os.WriteFile(filepath.Join(bin, "tar"), []byte(tar), 0o755); err != nil {
		fmt.Println(err)
		return
	}
	full := gridsitetest.InPath{Conn: local.Conn{}, Bin: bin}
	result, err := full.Run(context.Background(), gridsite.Command{Argv: []string{"tar", "-x"}})
	fmt.Printf("%d %s%v\n", result.Exit, result.Stderr, err)
	// Output:
	// 2 No space left on device
	// <nil>
}
