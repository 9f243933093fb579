package jobfiles

import "testing"

// The name of a worker job's worker leads back to the worker of the pool; other workers have no mark in their names.
func TestStreamWorkersAreOnTheirGlideins(t *testing.T) {
	t.Parallel()
	for worker, want := range map[string]string{StreamWorker("tag/0", 17): "tag/0", "tag/0": "tag/0", "": ""} {
		if got := OnGlidein(worker); got != want {
			t.Errorf("%q is on %q, want %q", worker, got, want)
		}
	}
}
