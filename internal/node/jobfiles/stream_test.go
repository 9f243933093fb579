package jobfiles

import "testing"

// The name of a worker job's worker contains the name of the pool's worker; names of other workers contain no mark.
func TestStreamWorkersAreOnTheirGlideins(t *testing.T) {
	t.Parallel()
	for worker, want := range map[string]string{StreamWorker("tag/0", 17): "tag/0", "tag/0": "tag/0", "": ""} {
		if got := OnGlidein(worker); got != want {
			t.Errorf("%q is on %q, want %q", worker, got, want)
		}
	}
}
