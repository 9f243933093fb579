//go:build soak

package main

import (
	"testing"

	"github.com/corral-pilot/corral/internal/kit/datasets"
)

// The estimates of published runs are nearer to the runtimes with corrections than without. The work left is predicted
// better than by one factor for all kinds of tasks, on any number of cpus.
func TestCorrectionsHelp(t *testing.T) {
	t.Parallel()
	all, err := compareCorrections(t.Context(), datasets.Path(t, datasets.Instances))
	if err != nil || len(all) < 9 {
		t.Fatalf("%d applications, %v", len(all), err)
	}
	for w, misses := range meanOf(all).misses {
		none, ours, one := misses[0], misses[1], misses[len(misses)-1]
		t.Logf("%d cpus: none %.3f, corrected %.3f, one factor %.3f", widths[w], none, ours, one)
		if ours.tasks > none.tasks || ours.rest > 0.85*none.rest || ours.rest > 0.85*one.rest {
			t.Errorf("%d cpus: errors %.3f, want at most %.3f of tasks, and 15 %% less than %.3f and %.3f of the work left",
				widths[w], ours, none.tasks, none.rest, one.rest)
		}
	}
}
