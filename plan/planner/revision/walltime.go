package revision

import (
	"time"

	"github.com/corral-pilot/corral/plan"
)

// doubtful is the share by which a task may take longer than estimated without being cut: a task is expected to begin
// only on a pilot that stays for so much more. One that is cut needs its whole runtime again, which no pilot that is
// added then makes up for. It is less than the reserve that planner adds to walltimes, so that a pilot that was asked
// for takes all tasks that it was asked for.
const doubtful = 1. / 3

// doubt is doubtful, or 0 if some task is so long that no pilot that can be asked for stays for so much more.
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

// closing returns the pilots, by index among View.Pilots, on which all next tasks would be in doubt: the cluster starts
// a task wherever its estimate fits. They are to take no more tasks.
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

// next returns the tasks that are left and may begin soon, and in how long: nothing but running tasks is before them,
// which will be done within what is in doubt of their own runtime.
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
