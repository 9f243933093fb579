//go:build sites && soak

package dagman_test

import (
	"testing"

	"github.com/corral-pilot/corral/internal/kit/datasets"
)

// TestPublishedAsTheRealDAGMan reads each of HTCondor's own tests with the real condor_dagman.
func TestPublishedAsTheRealDAGMan(t *testing.T) {
	t.Parallel()
	published := datasets.Path(t, datasets.DAGMan)
	c := newTools(t, published)
	for _, dir := range []string{"default_log", "node_dir", "noop_node"} { // of nodes; DAGMan changes to them
		c.write(t, "job_dagman_"+dir+"-subdir/folder", "")
	}
	c.compare(t, published, "job_dagman_noop_node-dummy.dag")
}
