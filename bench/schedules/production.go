package main

import (
	"errors"
	"runtime"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/workflow/clustering"
)

// CyberShake's production of 2009 (E2.7): typically 220 workflows of 840,000 tasks each on 2,400 cores of Ranger. That
// is 197 million tasks in 44 days, or 52 per second.
const (
	shakeTasks = 840_000
	shakeCPUs  = 2400
	shakeRate  = 52
)

// A production is one such workflow, or a part of it on proportionally fewer cores, with a limit on the tasks started
// per second.
type production struct {
	tasks, cpus int
	rate        float64
	took        time.Duration
	used        float64 // share of the cores' time
}

func (p production) perSecond() float64 { return float64(p.tasks) / p.took.Seconds() }

// cyberShake simulates E2.7: which share of the cores can be used by a submit host that starts a given number of tasks
// per second. For a part of the workflow, all numbers are reduced in proportion, including the starts per
// second.
func (s *study) cyberShake(tasks int) error {
	var all []production
	a := cyberShake(tasks)
	part := float64(len(a.times)) / shakeTasks
	for _, rate := range []float64{embedded.Rate, shakeRate, 10} {
		p := production{tasks: len(a.times), cpus: max(1, int(shakeCPUs*part+0.5)), rate: rate * part}
		t := sim.Run(sim.Scenario{Work: a.spec(clustering.Rule{}), Cluster: sim.Cluster{
			Cluster: plan.Cluster{Rate: p.rate, Hop: embedded.Hop}}, Sites: []sim.Site{{Site: plan.Site{
			Name: "ranger", Hosts: p.cpus, Pilots: plan.Unlimited, CPUs: plan.Unlimited, Walltime: plan.Unbounded,
			Host: corral.Resources{CPUs: 1, MemoryMiB: 1024, GPUs: plan.Unlimited, DiskMiB: plan.Unlimited},
		}}}, Asks: []sim.Ask{{Pilot: plan.Pilot{Site: "ranger",
			Shape: corral.Shape{Hosts: p.cpus, CPUs: 1, MemoryMiB: 1024, Walltime: corral.Seconds(endless)}}}}})
		if t.Ending != sim.Done {
			return errors.New("CyberShake: " + t.Why)
		}
		p.took = t.Makespan()
		p.used = t.Work() / (p.took.Hours() * float64(p.cpus))
		all = append(all, p)
	}
	s.productions = all
	s.claim(claim{row: "F55", what: "tasks a second that an embedded cluster keeps up, of the whole",
		got: all[0].perSecond() / part, low: shakeRate, high: 1e6, unit: "/s"})
	s.claim(claim{row: "F55", what: "the cores' time that is used then", got: 100 * all[0].used, low: 80, high: 100,
		unit: "%"})
	s.claim(claim{row: "F55", what: "the same where 10 tasks a second start, as with a job of a pool for each",
		got: 100 * all[2].used, high: 50, unit: "%"})
	return nil
}

// A drain is a workflow that was passed through the release queue without being executed.
type drain struct {
	tasks int
	took  time.Duration
	mib   float64 // of the heap at the end; it is never less before
}

func (d drain) perSecond() float64 { return float64(d.tasks) / d.took.Seconds() }

// drained releases each task of a workflow with the rules of a run, on the number of CPUs of its production, and ends
// it.
func drained(a asleep) (d drain, err error) {
	began, x := time.Now(), execution.New(a.spec(clustering.Rule{}))
	now := time.Unix(1_700_000_000, 0)
	for !x.Done() {
		all := x.Release(now, execution.Offer{CPUs: shakeCPUs})
		if len(all) == 0 {
			return d, errors.New("tasks remain, but none of them is released")
		}
		for _, j := range all {
			end(x, j, execution.ToMsec(now))
		}
		now = now.Add(time.Millisecond)
	}
	d = drain{tasks: len(a.times), took: time.Since(began)}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	d.mib = float64(m.HeapInuse) / (1 << 20)
	runtime.KeepAlive(x)
	return d, nil
}

// end records that a worker took a job, and ended its task.
func end(x *execution.Execution, j execution.Job, at execution.Msec) {
	const worker = "ranger/0"
	t := j.Tasks[0]
	part := execution.Part{Task: int32(t.Index), Attempt: int32(t.Attempt)}
	x.Apply(execution.Record{At: at, Assigned: &execution.Assignment{Seq: j.Seq, Worker: worker,
		Parts: []execution.Part{part}}})
	x.Apply(execution.Record{At: at, Finished: &execution.Outcome{Seq: j.Seq, Task: part.Task, Attempt: part.Attempt,
		Status: execution.Done, Worker: worker, Started: at, Ended: at + 1}})
}
