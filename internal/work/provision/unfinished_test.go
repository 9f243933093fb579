package provision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow/dag"
)

// TestLeftOfARun: finished tasks are excluded, running tasks remain at their workers for their remaining time, and
// workers that the run's own plan has requested are present.
func TestLeftOfARun(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	work := plan.Work{Name: "w"}
	for _, id := range []string{"done", "runs", "waits", "failed", "skipped"} {
		work.Tasks = append(work.Tasks, plan.Task{ID: id, Kind: id, Needs: corral.Resources{CPUs: 1}, Runtime: time.Minute})
	}
	var err error
	if work.Graph, err = dag.New(5, [][2]int{{0, 1}, {1, 2}, {3, 4}}); err != nil {
		t.Fatal(err)
	}
	worker := func(id string, glidein corral.GlideinID) corral.Worker {
		return corral.Worker{ID: id, Glidein: glidein, CPUs: 1, Connected: true, EndsAt: now.Add(time.Hour)}
	}
	u := Unfinished{
		Run: corral.Run{ID: 7, State: corral.RunRunning, Labels: map[string]string{corral.PlanLabel: "3"}},
		Progress: []execution.Progress{
			{State: corral.TaskDone, Took: time.Minute}, {State: corral.TaskRunning, Worker: "a", Since: now.Add(-20 * time.Second)},
			{State: corral.TaskWaiting}, {State: corral.TaskFailed}, {State: corral.TaskSkipped},
		},
		Glideins: []corral.Glidein{{ID: 1, SiteName: "hpc", Labels: map[string]string{corral.PlanLabel: "3"}},
			{ID: 2, SiteName: "hpc", Labels: map[string]string{corral.PlanLabel: "4"}}},
		Workers: []corral.Worker{worker("b", 2), worker("a", 1)},
		Now:     now,
	}
	left, err := u.Left(plan.Problem{Work: work})
	if err != nil {
		t.Fatal(err)
	}
	var rest []string
	for i, task := range work.Tasks {
		if u.Rest()(i) {
			rest = append(rest, task.ID)
		}
	}
	if diff := cmp.Diff([]string{"runs", "waits"}, rest); diff != "" {
		t.Errorf("tasks whose estimates count (-want +got):\n%s", diff)
	}
	kept := func(p plan.Problem) (all []string) {
		for _, task := range p.Work.Tasks {
			all = append(all, task.ID+" "+task.Runtime.String())
		}
		return all
	}
	if diff := cmp.Diff([]string{"runs 40s", "waits 1m0s"}, kept(left)); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	want := []plan.Present{{Site: "hpc", Hosts: 1, End: time.Hour, Keep: plan.Unbounded, Running: []plan.Running{{}},
		Host: corral.Resources{CPUs: 1, MemoryMiB: plan.Unlimited, DiskMiB: plan.Unlimited}}}
	if diff := cmp.Diff(want, left.Present); diff != "" {
		t.Errorf("pilots that are there (-want +got):\n%s", diff)
	}
	u.Run.State = corral.RunFailed
	if left, err = u.Left(plan.Problem{Work: work}); err != nil || len(left.Work.Tasks) != 4 || len(left.Present[0].Running) != 0 {
		t.Errorf("of a run that failed %q are left, %v; want all but what is done", kept(left), err)
	}
	for i := range u.Progress {
		u.Progress[i].State = corral.TaskDone
	}
	if _, err = u.Left(plan.Problem{Work: work}); corral.KindOf(err) != corral.Conflict {
		t.Errorf("of a run that is done: %v, want a Conflict", err)
	}
}
