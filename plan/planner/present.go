package planner

import (
	"math/bits"
	"time"

	"github.com/corral-pilot/corral/plan"
)

// A Forecast is what is expected of a workflow if no pilot is asked for beyond those that are present.
type Forecast struct {
	End   time.Duration   // of the last task that can be run
	Left  int             // tasks that no present pilot can take before it leaves
	Until []time.Duration // of each present pilot: when its last task ends; 0: it has none
}

// Expect returns the list schedule of a workflow on the pilots that are present. The problem's sites do not count.
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

// begin takes note of the pilots that are present, and of what they run. Some leave soon: tasks that take half as long
// as others are a class of their own then, so that what is too long for them does not keep what is not from them.
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

// presentLines are the hosts of pilots that are present. Each is one hold, which has begun, or will begin when its
// workers come, and which is not followed by another. A pilot of several hosts stays as long as one of them is busy.
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

// resume has the tasks begin that run already, each on its host, and says which they are.
func (s *scheduler) resume(present []plan.Present) map[int32]bool {
	running := map[int32]bool{}
	first := 0 // line of the pilot's first host
	for _, q := range present {
		for _, r := range q.Running {
			i, at := int32(r.Task), first+r.Host
			l := s.out.lines[at]
			if l.running == 0 {
				s.hosts.Set(at, l.host)
			}
			running[i] = true
			s.occupy(at, i, 0)
		}
		first += q.Hosts
	}
	return running
}

// presentCPUs is how many cpus the present pilots have.
func presentCPUs(present []plan.Present) (sum int) {
	for _, q := range present {
		sum += q.Hosts * q.Host.CPUs
	}
	return sum
}
