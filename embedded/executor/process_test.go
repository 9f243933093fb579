package executor

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/execution"
	"github.com/corral-pilot/corral/internal/proc"
)

// eventually waits for a condition. Only a hang reaches its end.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * time.Minute); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// A task that is stopped takes with it what has left its process group.
func TestStopKillsWhatLeftTheGroup(t *testing.T) {
	t.Parallel()
	x, err := New("w", "h", "")
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	dir := t.TempDir()
	job := execution.Job{Dir: dir, CPUs: 1, Tasks: []execution.Task{{
		ID: "t", Attempt: 1, Argv: []string{"sh", "-c", "setsid sleep 1000 & echo $! >&2; wait"},
	}}}
	e := x.Begin(&job, &job.Tasks[0])
	ended := make(chan execution.Result)
	go func() { ended <- e.Run(func() bool { return true }) }()
	stray := 0
	eventually(t, "the task has told the number of its child", func() bool {
		text, _ := os.ReadFile(dir + "/tasks/t.1/stderr")
		if strings.HasSuffix(string(text), "\n") {
			stray, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		p, ok := proc.Look(stray)
		return ok && p.Group == stray
	})
	e.Stop(execution.Cancelled, "cancelled")
	if r := <-ended; r.Status != execution.Cancelled {
		t.Errorf("result = %+v, want cancelled", r)
	}
	eventually(t, "the stray is gone", func() bool { _, ok := proc.Look(stray); return !ok })
}
