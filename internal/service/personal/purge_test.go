package personal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// Directories that runs chose are removed. Other files in such a directory stay, and so does a directory that cannot be
// removed: both cases are reported.
func TestPurge(t *testing.T) {
	t.Parallel()
	data, there := t.TempDir(), t.TempDir()
	s := &service{
		runs: []corral.Run{
			{ID: 1, Dir: filepath.Join(data, "runs", "1")}, // deleted with data
			{ID: 2, Dir: filepath.Join(there, "gone")},
			{ID: 3, Dir: there},
			{ID: 4, Dir: "/full"},
			{ID: 5, Dir: "/of/a/run/that/was/removed"},
		},
		refused: map[string]*api.Problem{
			"/v1/runs/4": api.ProblemOf(corral.Errorf(corral.Conflict, "it is in use")),
			"/v1/runs/5": api.ProblemOf(corral.Errorf(corral.NotFound, "no such run")),
		},
	}
	kept, left, err := Purge(t.Context(), s.client(t), data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"run 3: kept: notes.txt"}, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"run 4 keeps /full: it is in use"}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	want := []string{
		"DELETE /v1/runs/2?purge=true", "DELETE /v1/runs/3?purge=true", "DELETE /v1/runs/4?purge=true",
		"DELETE /v1/runs/5?purge=true",
	}
	if diff := cmp.Diff(want, s.changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(there); err != nil {
		t.Errorf("it is corrald that deletes: %v", err)
	}
}
