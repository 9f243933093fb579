// Package datasets finds published data for the longer tests: recorded executions of workflows, generated workflows,
// DAGs of HTCondor's own tests, and traces of batch queues. The data is other people's work, with a size of several
// hundred MB, so it is not in the repository.
//
// Only files with the build tag soak import this package (internal/archtest): make test needs nothing except the clone.
package datasets

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/corral-pilot/corral/internal/kit/programs"
)

// Names of the data sets, each with its own README or index.
const (
	DAGMan    = "dagman"      // DAGs of HTCondor's own tests, without their submit descriptions
	DAX       = "dax"         // 285 workflows of Pegasus's generator
	Gallery   = "gallery"     // the 21 most cited workflows
	Instances = "wfinstances" // 88 executions of production workflows (WfInstances)
	KTH       = "swf/KTH-SP2-1996-2.1-cln.swf.gz"
)

// variable names the folder of all data, if the folder is not beside the clone.
const variable = "CORRAL_DATA"

// Path returns the path of the data set with the given name. If the data is missing, the test fails with a message that
// names the data set: make test-more requires the data.
func Path(t testing.TB, name string) string {
	t.Helper()
	top, err := programs.Root()
	if err != nil {
		t.Fatal(err)
	}
	path, err := find(top, os.Getenv(variable), name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// find looks in a folder, which is relative to the top of the repository; the default folder is beside the repository.
func find(top, folder, name string) (string, error) {
	folder = cmp.Or(folder, filepath.Join("..", "shared", "data"))
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(top, folder)
	}
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("this test needs published data, which the repository does not contain: %w; "+
			"put the data there, or set %s to its folder (CONTRIBUTING.md, \"Published data\")", err, variable)
	}
	return path, nil
}
