package execution_test

import (
	"slices"
	"testing"
)

// The tasks of a cluster are one job, without those that were done before.
func TestJobsOfSpec(t *testing.T) {
	t.Parallel()
	spec := flat(t, 1, 1, 1, 1, 1, 1, 1)
	spec.Clusters = [][]int{{0, 1}, {2}, {3, 4}, {5, 6}}
	spec.Tasks[3].Done, spec.Tasks[5].Done, spec.Tasks[6].Done = true, true, true
	if of, n := spec.Jobs(); n != 3 || !slices.Equal(of, []int{1, 1, 0, 0, 0, 0, 0}) {
		t.Errorf("%d jobs: %v", n, of)
	}
	spec.Clusters = [][]int{{2}, {0, 3}, {1, 4}, {5, 6}}
	spec.Tasks[3].Done = false
	if of, n := spec.Jobs(); n != 3 || !slices.Equal(of, []int{1, 2, 0, 1, 2, 0, 0}) {
		t.Errorf("%d jobs: %v", n, of)
	}
}
