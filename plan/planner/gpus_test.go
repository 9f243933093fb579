package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral/plan"
)

// gpuSite returns a site with 10 nodes, each with 16 cpus and 4 GPUs.
func gpuSite() plan.Site {
	s := cloud()
	s.Host.CPUs, s.Host.GPUs, s.CPUs = 16, 4, 160
	return s
}

func TestNoGPUIsHeldForTasksThatNeedNone(t *testing.T) {
	pl, err := Make(plan.Problem{Work: stages(t, time.Hour, 20), Sites: []plan.Site{gpuSite()}},
		plan.Goal{Objective: plan.Makespan}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range pl.Pilots {
		if q.GPUs != 0 {
			t.Errorf("%+v", q)
		}
	}
}

func TestPilotsHaveTheGPUsThatTasksNeed(t *testing.T) {
	work := stages(t, time.Hour, 100)
	for i := range work.Tasks {
		work.Tasks[i].Needs.GPUs = 1
	}
	pl, err := Make(plan.Problem{Work: work, Sites: []plan.Site{gpuSite()}},
		plan.Goal{Objective: plan.Makespan}, Options{Shape: 1})
	if err != nil {
		t.Fatal(err)
	}
	hosts := 0
	for _, q := range pl.Pilots {
		if q.GPUs != 1 {
			t.Errorf("%+v", q)
		}
		hosts = max(hosts, q.Hosts)
	}
	if time.Duration(pl.Makespan) < 3*time.Hour { // 40 GPUs for 100 tasks
		t.Errorf("a makespan of %s, though there are 40 GPUs", time.Duration(pl.Makespan))
	}
}

func TestATaskThatNeedsMoreGPUsThanAnyHostHasIsNamed(t *testing.T) {
	work := stages(t, time.Hour, 1)
	work.Tasks[0].Needs.GPUs = 5
	pl, err := Make(plan.Problem{Work: work, Sites: []plan.Site{gpuSite()}},
		plan.Goal{Objective: plan.Makespan}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(pl.Reasons, "; "); pl.Feasible || !strings.Contains(said, "t0.0") ||
		!strings.Contains(said, "5 gpus") {
		t.Errorf("feasible: %v: %s", pl.Feasible, said)
	}
}
