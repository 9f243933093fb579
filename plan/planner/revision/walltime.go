package revision

import (
	"time"

	"github.com/corral-pilot/corral/plan"
)

// doubtful is the share by which a task may exceed its estimate without being cut off: a task is expected to start only
// on a pilot that stays that much longer. A task that is cut off needs its whole runtime again, and a pilot that is
// added only then comes too late. The share is less than the reserve that planner adds to walltimes, so that a
// requested pilot takes all the tasks planned for it.
const doubtful = 1. / 3

// doubt returns doubtful, or 0 if a task is too long for this reserve on any pilot that can be requested.
func doubt(p plan.Problem) float64 {
	var longest, lifetime time.Duration
	for _, t := range plan.Quickest(p).Tasks {
		longest = max(longest, t.Runtime)
	}
	for _, s := range p.Sites {
		lifetime = max(lifetime, s.Walltime-s.Overhead-s.Margin-p.Cluster.Leave)
	}
	if withDoubt(longest) > lifetime {
		return 0
	}
	return doubtful
}

func withDoubt(runtime time.Duration) time.Duration {
	return runtime + time.Duration(doubtful*float64(runtime))
}

// closing returns the pilots, by index in View.Pilots, on which all next tasks would be in doubt. These pilots must
// take no more tasks, because the cluster starts a task wherever its estimate fits.
func (o *outlook) closing() map[int]bool {
	all := map[int]bool{}
	next := next(o.left)
	for k, p := range o.left.Present {
		i := o.pilots[k]
		if i < 0 || o.Pilots[i].Phase != Working || p.Doubt == 0 {
			continue
		}
		unsure, sure := 0, 0
		for t, ready := range next {
			switch task := o.left.Work.Tasks[t]; {
			case !task.Needs.FitIn(p.Host) || p.Takes(task) > p.End:
			case ready+withDoubt(p.Takes(task)) > p.End:
				unsure++
			default:
				sure++
			}
		}
		if unsure > 0 && sure == 0 {
			all[i] = true
		}
	}
	return all
}

// next returns the remaining tasks that may start soon, each with the time until then: they depend only on running
// tasks, which end within the doubtful share of their own runtime.
func next(left plan.Problem) map[int]time.Duration {
	busy := map[int]bool{}
	for _, p := range left.Present {
		for _, r := range p.Running {
			busy[r.Task] = true
		}
	}
	all := map[int]time.Duration{}
	for t, task := range left.Work.Tasks {
		if busy[t] {
			continue
		}
		var ready time.Duration
		for _, p := range left.Work.Graph.Parents(t) {
			if ready = max(ready, left.Work.Task(p).Runtime); !busy[int(p)] {
				ready = plan.Unbounded
			}
		}
		if ready <= withDoubt(task.Runtime)-task.Runtime {
			all[t] = ready
		}
	}
	return all
}
