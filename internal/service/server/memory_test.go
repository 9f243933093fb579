package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/plan"
)

// used ends a job's task, which used this much memory, or was killed for it.
func (b *bench) used(t *testing.T, j execution.Job, mib int64, cause execution.Cause) {
	t.Helper()
	b.mu.Lock()
	sink := b.sinks[j.Run]
	b.mu.Unlock()
	if err := sink.Assigned("w", []execution.Key{j.Key()}); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	r := execution.Result{Key: j.Key(), Index: j.Tasks[0].Index, Attempt: j.Tasks[0].Attempt, Status: execution.Done,
		Worker: "w", StartedAt: now, EndedAt: now, Usage: execution.Usage{MaxRSSKiB: mib << 10}}
	if cause != "" {
		r.Status, r.Cause, r.Reason = execution.Failed, cause, "used too much"
	}
	if err := sink.Finished([]execution.Result{r}); err != nil {
		t.Fatal(err)
	}
}

// requesting returns the document of fan whose tasks request memory.
func requesting(n int, mib int64) []byte {
	return []byte(strings.ReplaceAll(string(fan(n, 1)), `"runtimeInSeconds"`,
		fmt.Sprintf(`"memoryInBytes": %d, "runtimeInSeconds"`, mib<<20)))
}

// taught creates a run whose three tasks request 100 MiB and use 300 MiB, and ends it.
func taught(t *testing.T, f *fixture) (api.NewRun, corral.Run) {
	t.Helper()
	in := api.NewRun{Workflow: requesting(2, 100), WorkflowName: "fan.json", Options: corral.RunOptions{Retries: 1}}
	first := must(f.CreateRun(t.Context(), in, ""))(t)
	for _, c := range []struct {
		memory int // of the job
		used   int64
		cause  execution.Cause
	}{{100, 200, execution.OverMemory}, {400, 300, ""}, {305, 290, ""}, {305, 290, ""}} {
		job := <-f.bench.submitted
		if job.MemoryMiB != c.memory {
			t.Errorf("task %s.%d gets %d MiB, want %d", job.Tasks[0].ID, job.Tasks[0].Attempt, job.MemoryMiB, c.memory)
		}
		f.bench.used(t, job, c.used, c.cause)
	}
	first = must(f.WaitRun(t.Context(), first.ID, time.Minute))(t)
	if diff := cmp.Diff([]corral.LearnedMemory{{Transformation: "t", MemoryMiB: 305}}, first.Report.LearnedMemory); diff != "" {
		t.Errorf("the first run (-want +got):\n%s", diff)
	}
	return in, first
}

// begins creates a run and returns the memory of its first job.
func begins(t *testing.T, f *fixture, in api.NewRun) int {
	t.Helper()
	must(f.CreateRun(t.Context(), in, ""))(t)
	return (<-f.bench.submitted).MemoryMiB
}

// TestRunsLearnMemory: once a task was killed for its memory, the next ones of its kind begin with what it then needed,
// rounded up: in its run, in later runs of the workflow and in plans, but not in another workflow, and not if they do
// not request memory.
func TestRunsLearnMemory(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	in, _ := taught(t, f)

	made := newPlan()
	made.Workflow = requesting(2, 100)
	says := func() bool {
		document := documentOf(t, must(f.CreatePlan(t.Context(), made, ""))(t))
		return slices.ContainsFunc(document.Reasons, func(r string) bool { return strings.Contains(r, "tasks of t begin with 305 MiB: run 1 ") })
	}
	if !says() {
		t.Error("the plan's reasons do not mention the learned memory")
	}
	if made.NoLearn = true; says() {
		t.Error("a plan that must not learn has learned the memory")
	}

	if mib := begins(t, f, in); mib != 305 {
		t.Errorf("a later run begins with %d MiB, want 305", mib)
	}
	unrequested := in
	unrequested.Workflow = fan(2, 1)
	if mib := begins(t, f, unrequested); mib != 0 {
		t.Errorf("a task without a request gets %d MiB, want its share", mib)
	}
	in.Workflow = []byte(strings.Replace(string(in.Workflow), `"fan"`, `"other"`, 1))
	if mib := begins(t, f, in); mib != 100 {
		t.Errorf("another workflow begins with %d MiB", mib)
	}
}

// TestMemoryIsForgotten: a run that was deleted teaches later ones nothing.
func TestMemoryIsForgotten(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	in, first := taught(t, f)
	must(f.RemoveRun(t.Context(), first.ID, false))(t)
	if mib := begins(t, f, in); mib != 100 {
		t.Errorf("after the run was deleted, another begins with %d MiB", mib)
	}
}

// TestRunsOfPlansThatDoNotLearn: a run does not learn the memory of its tasks if its plan was made without it.
func TestRunsOfPlansThatDoNotLearn(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	in, _ := taught(t, f)
	made := newPlan()
	made.Workflow, made.Goal = in.Workflow, plan.Goal{}
	for _, c := range []struct {
		without bool
		want    int
	}{{false, 305}, {true, 100}} {
		made.NoLearn = c.without
		p := must(f.CreatePlan(t.Context(), made, ""))(t)
		must(f.ProvisionPlan(t.Context(), p.ID))(t)
		in.Labels = map[string]string{corral.PlanLabel: fmt.Sprint(p.ID)}
		if mib := begins(t, f, in); mib != c.want {
			t.Errorf("no-learn %t: the plan's run begins with %d MiB, want %d", c.without, mib, c.want)
		}
	}
}

// TestSharesAreNotLearned: a share of a worker that was too small says nothing about tasks that request memory, and a
// fixed amount may be less than the share of the next worker.
func TestSharesAreNotLearned(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.readySite(t)
	in := api.NewRun{Workflow: fan(1, 1), WorkflowName: "fan.json", Options: corral.RunOptions{Retries: 1}}
	first := must(f.CreateRun(t.Context(), in, ""))(t)
	for _, c := range []struct {
		memory int // of the job
		used   int64
		cause  execution.Cause
	}{{0, 200, execution.OverMemory}, {400, 300, ""}, {305, 290, ""}} {
		job := <-f.bench.submitted
		if job.MemoryMiB != c.memory {
			t.Errorf("task %s.%d gets %d MiB, want %d", job.Tasks[0].ID, job.Tasks[0].Attempt, job.MemoryMiB, c.memory)
		}
		f.bench.used(t, job, c.used, c.cause)
	}
	if first = must(f.WaitRun(t.Context(), first.ID, time.Minute))(t); len(first.Report.LearnedMemory) > 0 {
		t.Errorf("the run has learned %v", first.Report.LearnedMemory)
	}
	in.Workflow = requesting(1, 100)
	if mib := begins(t, f, in); mib != 100 {
		t.Errorf("a task that requests 100 MiB gets %d MiB", mib)
	}
}
