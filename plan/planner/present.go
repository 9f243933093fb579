package planner

import (
	"math/bits"
	"time"

	"github.com/corral-pilot/corral/plan"
)

// A Forecast is the expected progress of a workflow on the present pilots alone.
type Forecast struct {
	End   time.Duration   // end of the last task that can run
	Left  int             // tasks that no present pilot can finish before it leaves
	Until []time.Duration // for each present pilot, the end of its last task; 0: it has none
}

// Expect returns the forecast from a list schedule of a workflow on the present pilots. It ignores the problem's sites.
func Expect(problem plan.Problem) Forecast {
	t := newTasks(problem.Work, plan.Quickest(problem))
	t.begin(problem.Present)
	s := list(t, problem.Cluster, presentLines(problem.Present))
	f := Forecast{End: s.makespan, Left: len(problem.Work.Tasks) - s.placed,
		Until: make([]time.Duration, len(problem.Present))}
	for i, at := range s.start {
		if l := s.lines; len(l) > 0 && s.hold[i] >= 0 {
			k := l[s.line[i]].present - 1
			f.Until[k] = max(f.Until[k], at+problem.Present[k].Takes(problem.Work.Tasks[i]))
		}
	}
	return f
}

// begin registers the present pilots and their running tasks. Some pilots leave soon. Therefore tasks are also
// classified by length, in powers of two, so that a task that is too long for a pilot does not block shorter ones.
func (t *tasks) begin(present []plan.Present) {
	t.running = present
	if len(present) == 0 {
		return
	}
	type class struct {
		needs  int32
		length int
	}
	known := map[class]int32{}
	needs := t.needs
	t.needs = nil
	for i := range t.work.Tasks {
		key := class{t.class[i], bits.Len64(uint64(t.takes(int32(i)).Milliseconds()))}
		c, ok := known[key]
		if !ok {
			c = int32(len(t.needs))
			known[key] = c
			t.needs = append(t.needs, needs[key.needs])
		}
		t.class[i] = c
	}
}

// presentLines returns the hosts of the present pilots. Each has a single hold, which begins when its workers are ready
// and has no successor. A pilot with several hosts stays as long as one of them is busy.
func presentLines(present []plan.Present) (all []*line) {
	for i, q := range present {
		together := &mates{to: q.Ready - q.Idle}
		for n := range q.Hosts {
			span := plan.Span{From: q.Ready, To: q.Ready - q.Idle}
			all = append(all, &line{
				site: &plan.Site{Name: q.Site, Pace: q.Pace}, host: q.Host, ready: q.Ready, keep: q.Keep,
				doubt: q.Doubt, holds: []hold{{span, q.End}}, present: i + 1, number: n, mates: together,
			})
		}
	}
	return all
}

// resume starts the tasks that are already running, each on its host, and returns them.
func (s *scheduler) resume(present []plan.Present) map[int32]bool {
	running := map[int32]bool{}
	lines := map[[2]int]int{} // :: 1 + the index of a present pilot, and the number of its host → line
	for at, l := range s.out.lines {
		lines[[2]int{l.present, l.number}] = at
	}
	for k, q := range present {
		for _, r := range q.Running {
			i, at := int32(r.Task), lines[[2]int{k + 1, r.Host}]
			l := s.out.lines[at]
			if l.running == 0 {
				s.hosts.set(at, l.host)
			}
			running[i] = true
			s.occupy(at, i, 0)
		}
	}
	return running
}

// presentCPUs returns the total number of cpus of the present pilots.
func presentCPUs(present []plan.Present) (sum int) {
	for _, q := range present {
		sum += q.Hosts * q.Host.CPUs
	}
	return sum
}
