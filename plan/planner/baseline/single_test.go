package baseline

import (
	"testing"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
)

// The job of a task has its cpus' share of a host's memory, or more if the task needs more.
func TestShapeOfSingleJobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hostMiB, taskMiB, want int
	}{{16384, 0, 4096}, {16384, 1000, 4096}, {16384, 9000, 9000}, {plan.Unlimited, 0, 0}, {plan.Unlimited, 1000, 1000}} {
		x := &single{}
		x.Sites = []sim.Site{{Site: plan.Site{Host: corral.Resources{CPUs: 8, MemoryMiB: c.hostMiB}}}}
		want := corral.Shape{Hosts: 1, CPUs: 2, MemoryMiB: c.want, GPUs: 1}
		if got := x.shape(corral.Resources{CPUs: 2, MemoryMiB: c.taskMiB, GPUs: 1}); got != want {
			t.Errorf("%+v: %+v, want %+v", c, got, want)
		}
	}
}
