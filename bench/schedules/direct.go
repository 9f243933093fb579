package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/corral-pilot/corral/internal/kit/heap"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A grid is a site to which each job of a workflow is submitted separately, as DAGMan does through Condor-G and a GRAM
// gatekeeper: a job is submitted when its predecessors have ended, and is in the batch system's queue after a delay.
type grid struct {
	way   time.Duration // delay until the queue, including that of the report that the job has ended
	gap   time.Duration // minimum time between two jobs that enter the queue; 0: none
	queue *queue.Queue  // initial state of the queue; not changed
}

// A job is a series of tasks that run one after another, as one job of a batch system.
type job struct {
	length  time.Duration
	missing int // jobs that it waits for
	after   []int
}

// jobs converts a workflow's tasks to jobs: one for each group, or for each task if there are no groups.
func jobs(g *dag.Graph, times []time.Duration, groups [][]int) []job {
	if groups == nil {
		for i := range times {
			groups = append(groups, []int{i})
		}
	}
	all, of := make([]job, len(groups)), make([]int, len(times))
	for k, group := range groups {
		for _, i := range group {
			of[i], all[k].length = k, all[k].length+times[i]
		}
	}
	known := map[[2]int]bool{}
	for i := range times {
		for _, c := range g.Children(i) {
			edge := [2]int{of[i], of[c]}
			if edge[0] != edge[1] && !known[edge] {
				known[edge] = true
				all[edge[0]].after = append(all[edge[0]].after, edge[1])
				all[edge[1]].missing++
			}
		}
	}
	return all
}

// inOnePiece returns a workflow whose tasks are jobs of another: a job is never split.
func inOnePiece(name string, all []job) asleep {
	a := asleep{wf: &workflow.Workflow{Name: name}}
	var edges [][2]int
	for i, j := range all {
		a.wf.Tasks = append(a.wf.Tasks, workflow.Task{ID: strconv.Itoa(i)})
		a.times = append(a.times, j.length)
		for _, c := range j.after {
			edges = append(edges, [2]int{i, c})
		}
	}
	a.wf.Graph, _ = dag.New(len(all), edges) // groups of a level have no circular dependencies
	return a
}

// A moment is when a job is submitted, or ends.
type moment struct {
	at   time.Duration
	job  int
	ends bool
}

func (m moment) before(n moment) bool { return m.at < n.at || m.at == n.at && m.job < n.job }

// run simulates jobs at a grid and returns the duration from the beginning to the last end.
func (g grid) run(all []job) (makespan time.Duration, err error) {
	q, entered := g.queue.Clone(), time.Duration(0)
	origin := q.Now()
	next := heap.New(moment.before)
	missing := make([]int, len(all))
	submit := func(i int, at time.Duration) {
		entered = max(at+g.way, entered+g.gap)
		next.Push(moment{entered, i, false})
	}
	for i, j := range all {
		if missing[i] = j.missing; j.missing == 0 {
			submit(i, origin)
		}
	}
	started := func(j queue.Job, at time.Duration) {
		if j.User == us {
			next.Push(moment{at + j.Runtime, j.ID, true})
		}
	}
	for left := len(all); left > 0; {
		at, ok := q.Next()
		if next.Len() > 0 && (!ok || next.First().at <= at) {
			at = next.First().at
		}
		q.Reach(at, started)
		for next.Len() > 0 && next.First().at <= at {
			m := next.Pop()
			if !m.ends {
				length := all[m.job].length
				j := queue.Job{ID: m.job, User: us, Processors: 1, Requested: length, Runtime: length}
				if why := q.Submit(j); why != "" {
					return 0, fmt.Errorf("job %d is refused: %s", m.job, why)
				}
				continue
			}
			left--
			makespan = m.at - origin
			for _, c := range all[m.job].after {
				if missing[c]--; missing[c] == 0 {
					submit(c, m.at)
				}
			}
		}
		q.Advance(at, started)
	}
	return makespan, nil
}

// us is the user of the workflow's jobs.
const us = -2
