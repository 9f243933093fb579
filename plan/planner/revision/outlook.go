package revision

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/workflow/dag"
	"github.com/corral-pilot/corral/workflow/profile"
)

// An outlook is the remaining work at an instant, as a problem whose time 0 is that instant.
type outlook struct {
	View
	left    plan.Problem
	pilots  []int // :: present pilot of the problem → its index in View.Pilots; negative: not one of the plan's
	running []int // cpus of the running tasks of each of View.Pilots
	ends    []time.Duration
	planner.Forecast
}

// ratios returns the factor by which tasks of each kind take longer than estimated, according to the tasks that have
// ended.
func (v View) ratios() map[string]float64 {
	ended := map[string]profile.Correction{}
	for i, t := range v.Tasks {
		if t.State == corral.TaskDone {
			task := &v.Problem.Work.Tasks[i]
			ended[task.Kind] = ended[task.Kind].With(t.Took, task.Runtime)
		}
	}
	ratios := map[string]float64{}
	for kind, c := range ended {
		if factor, ok := c.Factor(v.Guesses[kind]); ok {
			ratios[kind] = factor
		}
	}
	return ratios
}

// Left returns the remaining work at an instant as a problem whose time 0 is that instant: the unfinished tasks, with
// corrected estimates, and the present pilots with their running tasks.
func Left(v View) plan.Problem { return outlookOf(v, false).left }

// expect returns the remaining work and the time when the present pilots will finish it.
func expect(v View) *outlook {
	o := outlookOf(v, true)
	o.look(o.left)
	return o
}

// outlookOf returns the remaining work. If joined is set, a task that waits at a worker is merged with the task that
// runs there.
func outlookOf(v View, joined bool) *outlook {
	o := &outlook{View: v, running: make([]int, len(v.Pilots)), ends: make([]time.Duration, len(v.Pilots))}
	o.left = plan.Problem{Sites: v.Problem.Sites, Cluster: v.Problem.Cluster}
	behind := waiting(o)
	index := remaining(o)
	if joined && slices.ContainsFunc(behind, func(k int) bool { return k >= 0 }) {
		o.left.Work, index = join(o.left.Work, index, behind)
	}
	begun(o, index, behind)
	seat(o, index, behind)
	return o
}

// look predicts when the pilots of a problem will finish the remaining work.
func (o *outlook) look(p plan.Problem) {
	o.Forecast = planner.Expect(p)
	for k, i := range o.pilots {
		if i >= 0 {
			o.ends[i] = 0
			if until := o.Until[k]; until > 0 {
				o.ends[i] = o.Now + until
			}
		}
	}
}

// waiting returns, for each task that waits at a worker, a task that runs there: the tasks of a clustered job run there
// in sequence. For other tasks the value is -1.
func waiting(o *outlook) []int {
	type place struct{ pilot, host int }
	free, runner := map[place]corral.Resources{}, map[place]int{}
	behind := make([]int, len(o.Tasks))
	for i, t := range o.Tasks {
		behind[i] = -1
		if t.State != corral.TaskRunning || t.Pilot < 0 {
			continue
		}
		at, needs := place{t.Pilot, t.Host}, o.Problem.Work.Task(i).Needs
		room, known := free[at]
		if !known {
			room = o.host(t.Pilot)
		}
		if needs.FitIn(room) {
			free[at] = room.Minus(needs)
			if _, known := runner[at]; !known {
				runner[at] = i
			}
		} else if first, known := runner[at]; known {
			behind[i] = first
		}
	}
	return behind
}

// join returns the remaining work with the tasks that wait at a worker merged into the running ones, and the index of
// each task in the result.
func join(left plan.Work, index, behind []int) (joined plan.Work, at []int) {
	number := make([]int, len(left.Tasks)) // :: index in left → index in joined
	joined.Name, at = left.Name, make([]int, len(index))
	for i, k := range index {
		at[i] = -1
		switch {
		case k >= 0 && behind[i] < 0:
			at[i], number[k] = len(joined.Tasks), len(joined.Tasks)
			joined.Tasks = append(joined.Tasks, left.Tasks[k])
		case k >= 0: // the task that it waits for comes first
			at[i] = at[behind[i]]
			number[k] = at[i]
			joined.Tasks[at[i]].Runtime += left.Tasks[k].Runtime
			joined.Tasks[at[i]].Bytes += left.Tasks[k].Bytes
		}
	}
	var edges [][2]int
	for k := range left.Tasks {
		for _, c := range left.Graph.Children(k) {
			edges = append(edges, [2]int{number[k], number[c]})
		}
	}
	slices.SortFunc(edges, func(a, b [2]int) int { return cmp.Or(a[0]-b[0], a[1]-b[1]) })
	var err error
	if joined.Graph, err = dag.New(len(joined.Tasks), slices.Compact(edges)); err != nil {
		panic("revision: " + err.Error()) // unreachable: tasks that wait at workers depend on no other task
	}
	return joined, at
}

// host returns the resources of each host of a pilot. The argument is an index in View.Pilots, followed by
// Problem.Present.
func (o *outlook) host(pilot int) corral.Resources {
	if pilot < len(o.Pilots) {
		return o.Pilots[pilot].Host
	}
	return o.Problem.Present[pilot-len(o.Pilots)].Host
}

// paceOf returns the pace of a pilot's hosts, for the same index as host. For a negative index it returns the pace of
// the fastest hosts, which share the run's directory.
func paceOf(v View, pilot int) plan.Pace {
	switch {
	case pilot < 0:
		return plan.Pace{}
	case pilot < len(v.Pilots):
		return v.Pilots[pilot].Pace
	}
	return v.Problem.Present[pilot-len(v.Pilots)].Pace
}

// remaining lists the unfinished tasks with corrected estimates, and returns the index of each task in that list, or -1
// if the task is over.
func remaining(o *outlook) []int {
	ratios := o.ratios()
	var index []int
	o.left.Work, index = o.Problem.Work.Part(func(i int) bool {
		s := o.Tasks[i].State
		return s != corral.TaskDone && s != corral.TaskFailed && s != corral.TaskSkipped
	})
	for _, k := range index {
		if k < 0 {
			continue
		}
		task := &o.left.Work.Tasks[k]
		if r, ok := ratios[task.Kind]; ok {
			task.Runtime = time.Duration(float64(task.Runtime) * r).Round(time.Millisecond)
		}
	}
	return index
}

// begun reduces running tasks to the remaining time, which includes file transfers. A cluster may report a job's tasks
// only when the job ends, as HTCondor does; therefore the time since the job's start is subtracted from the job as a
// whole.
func begun(o *outlook, index, behind []int) {
	for i, t := range o.Tasks {
		if t.State == corral.TaskRunning && behind[i] < 0 {
			task := &o.left.Work.Tasks[index[i]]
			pace := paceOf(o.View, t.Pilot)
			all := task.Runtime + pace.Speed.Estimate(pace.Transfer.Takes(task.Bytes))
			task.Runtime = overdue(all, pace.Speed.Estimate(o.Now-t.Since)).Round(time.Millisecond)
			task.Bytes = plan.Here
		}
	}
}

// seat lists the pilots that run tasks, now or later, with their running tasks. Pilots with present workers come first,
// and among them those that stay longest: if there is work for only some pilots, it must not be assigned to pilots that
// would cut it off. The running tasks of a leaving pilot end with the pilot, and no other tasks begin there.
func seat(o *outlook, index, behind []int) {
	of := map[int]int{} // :: index in View.Pilots → index among the present pilots
	byStay := make([]int, len(o.Pilots))
	for i := range byStay {
		byStay[i] = i
	}
	slices.SortStableFunc(byStay, func(a, b int) int { return cmp.Compare(o.Pilots[b].leaves(), o.Pilots[a].leaves()) })
	share := doubt(o.left)
	for _, phase := range []Phase{Working, Leaving, Booting, Queued, Planned} {
		for _, i := range byStay {
			q := o.Pilots[i]
			if q.Phase != phase {
				continue
			}
			p, ok := q.present(o.Now)
			p.Doubt = share
			if phase == Leaving {
				p, ok = plan.Present{Site: q.Site, Hosts: q.Hosts, Host: q.Host, Pace: p.Pace}, true
			}
			if ok {
				of[i] = len(o.left.Present)
				o.left.Present, o.pilots = append(o.left.Present, p), append(o.pilots, i)
			}
		}
	}
	for j, p := range o.Problem.Present {
		of[len(o.Pilots)+j] = len(o.left.Present)
		o.left.Present, o.pilots = append(o.left.Present, p), append(o.pilots, -1)
	}
	free := map[[2]int]corral.Resources{}
	for i, t := range o.Tasks {
		k, ok := of[t.Pilot]
		if t.State != corral.TaskRunning || !ok || t.Host >= o.left.Present[k].Hosts || behind[i] >= 0 {
			continue
		}
		at, needs := [2]int{k, t.Host}, o.Problem.Work.Task(i).Needs
		room, known := free[at]
		if !known {
			room = o.left.Present[k].Host
		}
		if !needs.FitIn(room) || o.left.Present[k].Ready > 0 { // it runs on an earlier attempt, which is lost
			continue // treat it as ready
		}
		free[at] = room.Minus(needs)
		if o.pilots[k] >= 0 {
			o.running[t.Pilot] += needs.CPUs
		}
		o.left.Present[k].Running = append(o.left.Present[k].Running, plan.Running{Task: index[i], Host: t.Host})
	}
}

// without returns the problem without some of View.Pilots.
func (o *outlook) without(dropped map[int]bool) plan.Problem {
	p := o.left
	p.Present = nil
	for k, q := range o.left.Present {
		if i := o.pilots[k]; i >= 0 && dropped[i] {
			q.End, q.Ready = -1, 0 // the pilot keeps its index, but takes no tasks
		}
		p.Present = append(p.Present, q)
	}
	return p
}
