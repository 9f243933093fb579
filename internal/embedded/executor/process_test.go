package executor

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/kit/proc"
)

// eventually waits for a condition. Its time limit is exceeded only if the code under test hangs.
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

// A begun is an attempt that runs in a goroutine of its own.
type begun struct {
	*Attempt
	dir   string // of the attempt
	ended chan execution.Result
}

// prepared returns a task with a script and a grace that has not begun.
func prepared(t *testing.T, script string, grace time.Duration) *begun {
	t.Helper()
	x, err := New("w", "h", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	dir := t.TempDir()
	job := execution.Job{Run: 3, Dir: dir, CPUs: 1, Tasks: []execution.Task{{
		ID: "t", Attempt: 1, Argv: []string{"sh", "-c", script}, Manner: execution.Manner{Grace: grace},
	}}}
	return &begun{x.Begin(&job, &job.Tasks[0]), dir + "/tasks/t.1", make(chan execution.Result, 1)}
}

// run runs the attempt and waits until the script has printed a line.
func (b *begun) run(t *testing.T) {
	t.Helper()
	go func() { b.ended <- b.Run(func() bool { return true }) }()
	eventually(t, "the task prints a line", func() bool { return strings.Contains(b.file("stdout"), "\n") })
}

// begin starts a task with a script and a grace, and waits until the script has printed a line.
func begin(t *testing.T, script string, grace time.Duration) *begun {
	t.Helper()
	b := prepared(t, script, grace)
	b.run(t)
	return b
}

func (b *begun) file(name string) string {
	text, _ := os.ReadFile(b.dir + "/" + name) // missing until the task writes it
	return string(text)
}

// gone waits until the process whose id the task printed has ended.
func (b *begun) gone(t *testing.T) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(b.file("stdout")))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stray is gone", func() bool { _, ok := proc.Look(pid); return !ok })
}

// Stopping a task also kills its processes outside its process group.
func TestStopKillsProcessesOutsideTheGroup(t *testing.T) {
	t.Parallel()
	b := begin(t, "trap '' TERM; setsid sh -c 'echo $$; exec sleep 1000' & wait", 0)
	b.Stop(execution.Cancelled, "cancelled")
	if r := <-b.ended; r.Status != execution.Cancelled || r.Signal != "SIGKILL" {
		t.Errorf("result = %+v, want cancelled by SIGKILL", r)
	}
	b.gone(t)
}

// A task that is asked to end has a grace period for cleaning up, and so do its processes outside its group. Processes
// that do not catch the signal end immediately, and so do stopped processes.
func TestEndLeavesTimeToCleanUp(t *testing.T) {
	t.Parallel()
	const stray = `setsid sh -c 'trap "echo heard >&2; exit" TERM; echo $$; while :; do sleep 0.01; done' & `
	for script, want := range map[string]struct {
		grace        time.Duration
		exit         int
		signal, says string
	}{
		"echo begun; exec sleep 1000": {time.Hour, -1, "SIGTERM", ""},
		"trap 'echo tidy >&2; exit 3' TERM; echo x; while :; do sleep 0.01; done": {time.Hour, 3, "", "tidy\n"},
		"trap '' TERM; echo deaf; while :; do sleep 0.01; done":                   {time.Millisecond, -1, "SIGKILL", ""},
		"echo begun; kill -STOP $$":                                               {time.Hour, -1, "SIGTERM", ""},
		"trap : TERM; " + stray + "wait; wait; exit 4":                            {time.Hour, 4, "", "heard\n"},
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			b := begin(t, script, want.grace)
			b.End(execution.Cancelled, "cancelled")
			b.End(execution.Failed, "again")
			r := <-b.ended
			if r.Status != execution.Cancelled || r.Exit != want.exit || r.Signal != want.signal || r.Reason != "cancelled" {
				t.Errorf("result = %+v, want %+v", r, want)
			}
			if got := b.file("stderr"); !strings.HasSuffix(got, want.says) { // a shell adds messages about its commands
				t.Errorf("it said %q, want %q", got, want.says)
			}
		})
	}
}

// Processes that remain after a task has ended on request are killed.
func TestEndKillsLeftoverProcesses(t *testing.T) {
	t.Parallel()
	b := begin(t, `setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 0.01; done' & wait`, time.Hour)
	b.End(execution.Cancelled, "cancelled")
	<-b.ended
	b.gone(t)
}

// A worker that must leave does not wait for the grace period of a cancelled task.
func TestStopAfterEnd(t *testing.T) {
	t.Parallel()
	b := begin(t, "trap 'echo heard >&2' TERM; echo x; while :; do sleep 0.01; done", time.Hour)
	b.End(execution.Cancelled, "cancelled")
	eventually(t, "it hears of it", func() bool { return b.file("stderr") != "" })
	b.Stop(execution.Cut, "its worker had to leave")
	if r := <-b.ended; r.Status != execution.Cancelled || r.Signal != "SIGKILL" {
		t.Errorf("result = %+v, want cancelled, by SIGKILL", r)
	}
}
