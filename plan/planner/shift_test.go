package planner

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// alike returns a problem whose tasks need equal resources, some with no runtime, at one site that is always open.
func alike(t testing.TB, rng *rand.Rand) plan.Problem {
	t.Helper()
	w := randomWork(t, rng, 40)
	need := corral.Resources{CPUs: 1 + rng.IntN(2), MemoryMiB: rng.IntN(200)}
	for i := range w.Tasks {
		w.Tasks[i].Needs = need
		w.Tasks[i].Runtime = time.Duration(rng.IntN(60)) * time.Duration(rng.IntN(2)) * time.Minute
	}
	s := cloud()
	s.Host, s.Hosts = corral.Resources{CPUs: 1 + rng.IntN(8), MemoryMiB: 1000}, 1+rng.IntN(4)
	s.Host.CPUs = max(s.Host.CPUs, need.CPUs)
	s.Overhead = time.Duration(rng.IntN(3)) * time.Minute
	if rng.IntN(2) == 0 {
		s.Wait = func(shape plan.Shape) time.Duration { return time.Duration(shape.Hosts) * time.Minute }
	}
	hop := time.Duration(rng.IntN(3)) * time.Second
	return plan.Problem{Work: w, Sites: []plan.Site{s}, Cluster: plan.Cluster{Hop: hop, Reuse: hop / 3}}
}

// On identical hosts, each improved schedule is no longer than the initial list schedule, starts no task before its
// parents have ended, and places every task.
func TestTasksMoveOnlyToMakeASchedulesShorter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := seeded(rt)
		problem := alike(t, rng)
		goal := plan.Goal{Deadline: corral.Seconds(1000 * time.Hour)}
		p := &planning{Problem: problem, Goal: goal, tasks: newTasks(problem.Work, problem.Work)}
		site := &p.Sites[0]
		n := &narrowing{p: p, order: []share{{site: site, host: site.Host, count: 1 + rng.IntN(5)}}, back: p.tasks.reversed()}
		n.alike, n.ready = n.uniform()
		if n.alike == 0 {
			rt.Fatal("hosts are not alike")
		}
		c := candidate(n.order)
		first := list(p.tasks, p.Cluster, p.lines(c, 0))
		for k := range 6 {
			s := n.schedule(c, k, 0)
			switch {
			case s == nil || s.placed < len(p.Work.Tasks):
				rt.Fatalf("try %d has no place for some task", k)
			case k == 0 && s.makespan > first.makespan:
				rt.Fatalf("%s, longer than %s", s.makespan, first.makespan)
			}
			for i := range p.Work.Tasks {
				for _, parent := range p.Work.Graph.Parents(i) {
					if s.start[i] < s.start[parent]+p.tasks.takes(int32(parent))+p.Cluster.Hop {
						rt.Fatalf("try %d: task %d starts at %s, its parent at %s", k, i, s.start[i], s.start[parent])
					}
				}
			}
		}
	})
}

func TestNoTaskMovesToTheRightWhenAllMoveToTheLeft(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := seeded(rt)
		problem := alike(t, rng)
		tasks := newTasks(problem.Work, problem.Work)
		count := 1 + rng.IntN(6)
		site := cloud()
		site.Host = problem.Work.Tasks[0].Needs
		lines := make([]*line, count)
		for i := range lines {
			lines[i] = &line{site: &site, host: site.Host, ready: time.Minute, keep: time.Hour}
		}
		start := list(tasks.disturbed(rng, 9), problem.Cluster, lines).start
		for i := range start {
			start[i] += time.Hour
		}
		moved := tasks.shift(start, slots{count, time.Minute, problem.Cluster.Hop})
		for i, at := range moved {
			if at > start[i] {
				rt.Fatalf("task %d starts at %s, before at %s", i, at, start[i])
			}
		}
	})
}
