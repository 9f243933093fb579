package personal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
)

// condorTools returns a folder that contains a condor_q, a shell script.
func condorTools(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "condor_q"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Our own running pools are queried for their jobs, with their own condor_q and environment; long lists are
// abbreviated.
func TestQueuedJobsAreNamed(t *testing.T) {
	c := newCorrald(t)
	s := &service{
		clusters: []corral.Cluster{
			{ID: 1, Name: "embedded", Kind: corral.Embedded, State: corral.ClusterReady},
			{ID: 2, Name: "far", Kind: corral.Condor, State: corral.ClusterReady, Attached: true},
			{ID: 3, Name: "stopped", Kind: corral.Condor, State: corral.ClusterStopped},
			{ID: 4, Name: "mine", Kind: corral.Condor, State: corral.ClusterReady},
		},
		tools: condorTools(t, `[ "$CONDOR_CONFIG" = /mine ] && [ "$1" = -allusers ] && printf '%s\n' 1.0 1.1 2.0 3.0 3.1 3.2 4.0`),
	}
	cl := s.client(t)
	jobs, err := c.Queued(t.Context(), cl)
	if diff := cmp.Diff([]string{"1.0 1.1 2.0 3.0 3.1 2 more (cluster mine)"}, jobs); err != nil || diff != "" {
		t.Errorf("Queued: %v (-want +got):\n%s", err, diff)
	}
	s.tools = condorTools(t, "")
	if jobs, err := c.Queued(t.Context(), cl); err != nil || len(jobs) > 0 {
		t.Errorf("of empty queues: %q, %v", jobs, err)
	}
	s.tools = condorTools(t, "exit 1")
	_, err = c.Queued(t.Context(), cl)
	if corral.KindOf(err) != corral.Unknown || !strings.Contains(err.Error(), "cluster mine does not answer") {
		t.Errorf("of a queue that does not answer: %v", err)
	}
}
