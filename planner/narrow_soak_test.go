//go:build soak

package planner

import (
	"os"
	"testing"
)

// allInstances may lie beside the repository: 88 published workflows.
const allInstances = "../../shared/data/wfinstances"

func TestPlansOfAllPublishedWorkflowsAreNearTheBound(t *testing.T) {
	if _, err := os.Stat(allInstances); err != nil {
		t.Log(err)
		return
	}
	if n, energy, bound := nearBounds(t, allInstances); n != 88 || energy < 70 || bound < 78 {
		t.Errorf("of %d, %d are near the energetic bound, %d near the lower bound; want 88, 70, 78", n, energy, bound)
	}
}
