// Package datasets finds published data for the longer tests: recorded executions of workflows, generated workflows,
// DAGs of HTCondor's own tests, and traces of batch queues. They are other people's work and several hundred MB, so
// they are not in the repository.
//
// Only files with the build tag soak import this package (internal/archtest): make test needs nothing beside the clone.
package datasets

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/corral-pilot/corral/internal/kit/programs"
)

// Names of the data, each with a README or an index of its own.
const (
	DAGMan    = "dagman"      // DAGs of HTCondor's own tests, without their submit descriptions
	DAX       = "dax"         // 285 workflows of Pegasus's generator
	Gallery   = "gallery"     // the 21 workflows that are cited most
	Instances = "wfinstances" // 88 executions of production workflows (WfInstances)
	KTH       = "swf/KTH-SP2-1996-2.1-cln.swf.gz"
)

// variable names the folder of all data, if it is not beside the clone.
const variable = "CORRAL_DATA"

// Path returns the path of the data with a name. If they are absent, the test fails with a sentence that names what it
// needs: make test-more is for those who have them.
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

// find looks in a folder, which is relative to the top of the repository; by default it is beside that.
func find(top, folder, name string) (string, error) {
	folder = cmp.Or(folder, filepath.Join("..", "shared", "data"))
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(top, folder)
	}
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("this test needs published data, which the repository does not contain: %w; "+
			"put the data there, or set %s to their folder (CONTRIBUTING.md, \"Published data\")", err, variable)
	}
	return path, nil
}
