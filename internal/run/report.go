package run

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/dag"
	"github.com/corral-pilot/corral/workflow"
)

// runtimes returns how long the last attempt of each task took that is done, 0 for the others.
func (s *state) runtimes() []time.Duration {
	all := make([]time.Duration, len(s.tasks))
	for i, t := range s.tasks {
		if s.frontier.State(i) == dag.Done && t.started != 0 {
			all[i] = max(0, t.ended.sub(t.started))
		}
	}
	return all
}

// report compares what a run that was created at an instant took with what it could have taken. It is
// nil if no task ran.
func (s *state) report(createdAt time.Time) *corral.RunReport {
	if s.tally.firstStarted == 0 {
		return nil
	}
	created := toMsec(createdAt)
	took := s.runtimes()
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	r := &corral.RunReport{
		Makespan:       corral.Seconds(max(0, s.tally.lastEnded.sub(created))),
		TaskTime:       corral.Seconds(sum),
		CPUs:           s.tally.cpus,
		CriticalPath:   corral.Seconds(s.plan.graph.CriticalPath(took)),
		LostWork:       corral.Seconds(s.tally.lost),
		Requeued:       s.tally.requeued,
		RetriesUsed:    s.tally.retries,
		WaitForWorkers: corral.Seconds(max(0, s.tally.firstStarted.sub(created))),
	}
	cpus := s.plan.flow.CPUs()
	if r.CPUs > 0 {
		r.LowerBound = corral.Seconds(dag.LowerBound(s.plan.graph, took, cpus, r.CPUs))
	}
	if schedule, ok := dag.ListSchedule(s.plan.graph, took, cpus, r.CPUs); ok {
		r.ListSchedule = corral.Seconds(schedule)
	}
	r.Parallelism = ratio(r.TaskTime, r.Makespan)
	r.OverBound = ratio(r.Makespan, r.LowerBound)
	r.OverList = ratio(r.Makespan, r.ListSchedule)
	return r
}

// ratio is a ÷ b, 0 if b is 0: JSON has no infinity.
func ratio(a, b corral.Seconds) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// executions returns what was measured of each task that is done.
func (s *state) executions() []workflow.Execution {
	all := make([]workflow.Execution, len(s.tasks))
	for i, took := range s.runtimes() {
		if s.frontier.State(i) != dag.Done {
			continue
		}
		t := &s.tasks[i]
		all[i] = workflow.Execution{
			Runtime:     took,
			StartedAt:   t.started.time(),
			CPUTime:     t.cpu.sub(0),
			MemoryBytes: t.rssKiB << 10,
			Worker:      s.workers.all[t.worker].name,
		}
	}
	return all
}
