package run

import (
	"path/filepath"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

func mustOptions(clustering string) corral.RunOptions {
	return corral.RunOptions{Clustering: clustering, Retries: 2}
}

func TestFailureNamesOnlyFilesThatAreThere(t *testing.T) {
	t.Parallel()
	s := newState(mustPlan(t, corral.RunOptions{Clustering: "none"}, spec{ID: "a"}))
	s.replay(execution.Record{At: 1000, Assigned: &execution.Assignment{Seq: 1, Worker: "w", Parts: []execution.Part{{Attempt: 1}}}})
	s.replay(execution.Record{At: 5000, Finished: &execution.Outcome{
		Seq: 1, Task: 0, Attempt: 1, Status: execution.Failed, Exit: -1, Reason: "no room",
	}})
	const words = "task a failed (no room) in attempt 1"
	if got := s.failure(execution.VerdictOf(s.x), func(string) bool { return false }); got != words {
		t.Errorf("failure() = %q, want %q", got, words)
	}
	stderr := filepath.Join(s.plan.dir, "tasks", "a.1", "stderr")
	if got := s.failure(execution.VerdictOf(s.x), func(path string) bool { return path == stderr }); got != words+"; see "+stderr {
		t.Errorf("failure() = %q, want the path of stderr", got)
	}
}
