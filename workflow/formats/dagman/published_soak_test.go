//go:build soak

package dagman_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corral-pilot/corral/internal/kit/datasets"
)

// TestPublished reads each of HTCondor's own tests of DAGMan, whose submit descriptions are missing, and checks the
// workflow or the error.
func TestPublished(t *testing.T) {
	t.Parallel()
	published := datasets.Path(t, datasets.DAGMan)
	var got strings.Builder
	eachDAG(t, published, func(name string) {
		wf, _, err := readIn(published, name)
		if err != nil {
			fmt.Fprintf(&got, "%s: refused\n\t%v\n", name, err)
			return
		}
		fmt.Fprintf(&got, "%s: %d tasks, %d edges\n", name, len(wf.Tasks), wf.Graph.Edges())
	})
	golden(t, "testdata/published.txt", got.String())
}

// TestWriteRoundTripsPublished writes some of the published DAGs, and reads them again.
func TestWriteRoundTripsPublished(t *testing.T) {
	t.Parallel()
	published := datasets.Path(t, datasets.DAGMan)
	for _, name := range []string{
		"job_dagman_splice-J-one.dag", "job_dagman_final-F.dag", "job_dagman_rm.dag", "job_dagman_splice-cat.dag",
		"job_dagman_abort-final-A.dag", "job_dagman_node_prio.dag", "job_dagman_splice_connect-B.dag",
	} {
		wf, _, err := readIn(published, name)
		if err != nil {
			t.Fatal(err)
		}
		roundTrip(t, name, wf)
	}
}
