//go:build soak

package planner

import (
	"testing"

	"github.com/corral-pilot/corral/internal/kit/datasets"
)

func TestPlansOfAllPublishedWorkflowsAreNearTheBound(t *testing.T) {
	if n, energy, bound := nearBounds(t, datasets.Path(t, datasets.Instances)); n != 88 || energy < 70 || bound < 78 {
		t.Errorf("of %d, %d are near the energetic bound, %d near the lower bound; want 88, 70, 78", n, energy, bound)
	}
}
