package slurm

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

var update = flag.Bool("update", false, "rewrite testdata/transcript.txt")

// transcriptJobs returns jobs in states that the recorded scenes of a real Slurm do not have: ends by corrald and by
// workers, jobs that are being cancelled, limits of arrays, and jobs that sbatch has not submitted.
func transcriptJobs(t *testing.T) []job {
	t.Helper()
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	ann := submitter{Name: "ann", Group: "physics", UID: 1000, GID: 100}
	plain := spec{
		User: ann, Partition: "default", Submit: "sbatch job.sh", Command: "/w/job.sh one", Host: "head", Directory: "/w",
		Output: "/w/slurm-%j.out", Size: notation.Size{CPUs: 1, Tasks: 1}, Requeue: true,
	}
	large := plain
	large.Account, large.Comment, large.QOS, large.Nice, large.Error = "lab", "a rule", "high", 5, "/w/%x.err"
	large.Size = notation.Size{CPUs: 4, Tasks: 2, CPUsPerTask: 2, MemoryMiB: 512, MemoryEach: true, GPUs: 1}
	large.TimeLimit, large.Input = corral.Seconds(25*time.Hour), "/w/in/../data"
	array := plain
	array.Array, array.Output = "1-9:2%2", "/w/slurm-%A_%a.out"
	dependent, orphan := plain, plain
	dependent.Dependency, orphan.Dependency, orphan.KillOrphan = "afterok:3,afterany:4", "afterok:3", true
	// A task's times are those of its last attempt.
	task := func(number int, name string, s spec, state corral.TaskState) api.TaskStatus {
		w := ""
		if state == corral.TaskRunning || state == corral.TaskDone || state == corral.TaskFailed {
			w = "1-1/0.b"
		}
		return api.TaskStatus{State: state, Worker: w, Grown: &api.Grown{
			Number: number, Name: name, AddedAt: at(number), Attributes: attributesOf(t, s),
		}}
	}
	ran := func(task api.TaskStatus, from, to, status int) api.TaskStatus {
		task.Attempts, task.StartedAt = 1, at(from)
		if to > 0 {
			task.EndedAt, task.OverAt, task.ExitStatus = at(to), at(to), &status
		}
		return task
	}
	ended := func(task api.TaskStatus, cause, reason string) api.TaskStatus {
		task.Cause, task.Reason, task.ExitStatus = cause, reason, nil
		return task
	}
	element := func(n int, task api.TaskStatus) api.TaskStatus {
		task.Element, task.Array = n, 9
		return task
	}
	twice := ran(task(8, "again", plain, corral.TaskRunning), 50, 0, 0)
	twice.Attempts = 3
	r := &reader{base: 1_000_000, specs: map[string]*spec{}, arrays: map[string]*notation.Array{}}
	var jobs []job
	for _, t := range []api.TaskStatus{
		ran(task(1, "done", large, corral.TaskDone), 10, 40, 0),
		ended(ran(task(2, "fat", plain, corral.TaskFailed), 10, 11, 0), corral.CauseMemory, "killed by SIGKILL"),
		ran(task(3, "bad", plain, corral.TaskFailed), 10, 12, 3),
		ended(ran(task(4, "killed", plain, corral.TaskFailed), 10, 13, 0), "", "killed by SIGSEGV"),
		ended(ran(task(5, "slow", large, corral.TaskFailed), 14, 44, 0), corral.CauseTime, "killed by SIGKILL"),
		ended(ran(task(6, "lost", plain, corral.TaskFailed), 14, 24, 0), corral.CauseLostWorker, "its worker was lost"),
		ended(ran(task(7, "going", plain, corral.TaskRunning), 50, 0, 0), corral.CauseWithdrawn, ""),
		twice,
		element(0, ran(task(9, "array", array, corral.TaskDone), 30, 35, 0)),
		element(1, ran(task(10, "array", array, corral.TaskRunning), 40, 0, 0)),
		element(2, task(11, "array", array, corral.TaskWaiting)), element(3, task(12, "array", array, corral.TaskWaiting)),
		element(4, task(13, "array", array, corral.TaskWaiting)),
		task(14, "large", large, corral.TaskReady), task(15, "later", plain, corral.TaskReady),
		task(16, "after", dependent, corral.TaskWaiting), task(17, "never", dependent, corral.TaskSkipped),
		ended(task(18, "orphan", orphan, corral.TaskSkipped), corral.CauseNever, ""),
		ended(task(19, "early", plain, corral.TaskSkipped), corral.CauseWithdrawn, ""),
		{State: corral.TaskReady, Grown: &api.Grown{Number: 20, Name: "own", AddedAt: at(20), Attributes: map[string]string{"mine": "1"}}},
	} {
		jobs = append(jobs, r.job(t))
	}
	for i := range jobs { // a test's output does not depend on the machine's zone
		for _, at := range []*time.Time{&jobs[i].Submitted, &jobs[i].Eligible, &jobs[i].Started, &jobs[i].Ended} {
			if !at.IsZero() {
				*at = at.UTC()
			}
		}
	}
	return jobs
}

// testdata/transcript.txt contains commands and their output, one hour after noon.
func TestTranscript(t *testing.T) {
	const name = "testdata/transcript.txt"
	old, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	s := scene{jobs: transcriptJobs(t), cluster: "default", workers: []corral.Worker{
		{ID: "1-1/0.b", CPUs: 4, CPUsFree: 4, MemoryMiB: 8000}, {ID: "1-1/1.b", CPUs: 4, CPUsFree: 1, MemoryMiB: 8000},
		{ID: "1-1/2.b", CPUs: 4, MemoryMiB: 8000}, {ID: "1-1/3.b", CPUs: 4, CPUsFree: 3, MemoryMiB: 8000},
		{ID: "2-1/0", CPUs: 8, MemoryMiB: 64000, GPUs: 2}, {ID: "3-1/0", CPUs: 4, CPUsFree: 2, MemoryMiB: 8000, Draining: true},
		{ID: "3-1/1", CPUs: 4, CPUsFree: 4, MemoryMiB: 8000, Draining: true},
	}}
	var b strings.Builder
	for line := range strings.Lines(string(old)) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			if strings.HasPrefix(line, "# ") {
				b.WriteString("\n" + line)
			}
			continue
		}
		words := split(strings.TrimSpace(command))
		out, err := s.run(recorded{words: words, at: time.Date(2026, 11, 26, 13, 0, 0, 0, time.UTC)})
		b.WriteString(line + out)
		if err != nil {
			b.WriteString(notation.Message(words[0], err) + "\n")
		}
	}
	got := strings.TrimPrefix(b.String(), "\n")
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(old), got); diff != "" {
		t.Errorf("%s (-file +output):\n%s", name, diff)
	}
}
