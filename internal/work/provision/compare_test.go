package provision_test

import (
	"testing"

	"github.com/corral-pilot/corral/internal/work/provision"
)

// TestNamed: tasks that are named by their ids have no kinds of their own.
func TestNamed(t *testing.T) {
	t.Parallel()
	w := diamond(t)
	if !provision.Named(w) {
		t.Error("the diamond names its kinds")
	}
	if w.Tasks[1].Name = w.Tasks[1].ID; provision.Named(w) {
		t.Error("a task is named by its id")
	}
}

// TestAlike: a run provides information about a workflow if either of the two contains all kinds of tasks that the
// other contains.
func TestAlike(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kinds []string
		want  bool
	}{
		{[]string{"split", "left", "right", "join"}, true},
		{[]string{"split", "left", "right", "join", "plot"}, true}, // the workflow is a part of the run's
		{[]string{"split", "left"}, true},                          // the run failed half way
		{[]string{"split", "sort"}, false},
		{[]string{"sort"}, false},
	} {
		run := took(t, []string{"r0"}, tc.kinds[0], 1, 1)
		for i, kind := range tc.kinds[1:] {
			if err := run.Merge(took(t, []string{string(rune('a' + i))}, kind, 1, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if got := provision.Alike(run, diamond(t)); got != tc.want {
			t.Errorf("%q: %v, want %v", tc.kinds, got, tc.want)
		}
	}
}
