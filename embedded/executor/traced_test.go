package executor

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/execution"
	"github.com/corral-pilot/corral/profile/trace"
)

// beginTraced is begin of a task that is traced.
func beginTraced(t *testing.T, script string) *begun {
	t.Helper()
	b := prepared(t, script, 0)
	b.job.Trace = corral.TraceIO
	b.run(t)
	return b
}

// A task that is traced leaves what was seen in its directory, and its result has what only that tells. Nothing of it
// goes on, not even what has left its process group.
func TestTracedTask(t *testing.T) {
	t.Parallel()
	b := beginTraced(t, `setsid sleep 1000 & echo $! >&2; echo text | cat >copy; echo; exit 7`)
	r := <-b.ended
	if r.Exit != 7 || r.Reason != "exit status 7" || !strings.HasSuffix(string(r.MeasuredBy), byTrace) {
		t.Errorf("result: %+v", r)
	}
	if r.WrittenBytes < int64(len("text\n\n123\n")) || r.MaxRSSKiB == 0 {
		t.Errorf("usage: %+v", r.Usage)
	}
	var tr *trace.Trace
	err := trace.Read(strings.NewReader(b.file(TraceFile)), TraceFile, func(found *trace.Trace) error {
		tr = found
		return nil
	})
	if err != nil || tr == nil {
		t.Fatalf("trace %v: %v", tr, err)
	}
	if tr.ID != "t.1" || tr.Run != "run:3" || tr.Exit != 7 || len(tr.Processes) != 4 || tr.Kinds[trace.Pipe].Written != 5 {
		t.Errorf("trace: %+v", tr)
	}
	left := slices.ContainsFunc(tr.Processes, func(p trace.Process) bool { return p.Signal == "SIGKILL" })
	if !left {
		t.Errorf("nothing was killed of %+v", tr.Processes)
	}
}

// A traced task is stopped and asked to end as any other.
func TestTracedTaskEnds(t *testing.T) {
	t.Parallel()
	b := beginTraced(t, "trap '' TERM; setsid sh -c 'echo $$; exec sleep 1000' & wait")
	b.Stop(execution.Cancelled, "cancelled")
	if r := <-b.ended; r.Status != execution.Cancelled || r.Signal != "SIGKILL" {
		t.Errorf("stopped: %+v, want cancelled by SIGKILL", r)
	}
	b.gone(t)
	b = beginTraced(t, "trap 'echo tidied; exit 0' TERM; echo; while :; do sleep 1 & wait; done")
	b.End(execution.Cancelled, "cancelled")
	if r := <-b.ended; r.Status != execution.Cancelled || r.Exit != 0 || !strings.Contains(b.file("stdout"), "tidied") {
		t.Errorf("asked to end: %+v, printed %q", r, b.file("stdout"))
	}
	b = prepared(t, "exit 0", 0)
	b.job.Trace, b.job.Tasks[0].Argv = corral.TraceProcesses, []string{"./nowhere"}
	if r := b.Run(func() bool { return true }); r.Status != execution.Failed || !strings.Contains(r.Reason, "cannot be executed") {
		t.Errorf("a command that is not there: %+v", r)
	}
	if _, err := os.Stat(b.dir + "/" + TraceFile); err == nil {
		t.Error("it has a trace")
	}
}
