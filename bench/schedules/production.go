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

// CyberShake's production of 2009 (E2.7): 220 workflows of 840,000 tasks each on 2,400 cores of Ranger, typically. That
// is 197 million tasks in 44 days, or 52 a second.
const (
	shakeTasks = 840_000
	shakeCPUs  = 2400
	shakeRate  = 52
)

// A production is one such workflow, or a part of it on as many cores less, where so many tasks start a second at most.
type production struct {
	tasks, cpus int
	rate        float64
	took        time.Duration
	used        float64 // share of the cores' time
}

func (p production) perSecond() float64 { return float64(p.tasks) / p.took.Seconds() }

// cyberShake is E2.7: how much of the cores a submit host can use that starts so many tasks a second (trap T16). Of a
// part all numbers are as much less: what would be started a second, too.
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
		}}}, Asks: []sim.Ask{{Pilot: plan.Pilot{Site: "ranger", Hosts: p.cpus, CPUs: 1, MemoryMiB: 1024,
			Walltime: corral.Seconds(endless)}}}})
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

// A drain is a workflow that went through the release queue, with nothing executed.
type drain struct {
	tasks int
	took  time.Duration
	mib   float64 // of the heap, when all was done: what is kept of tasks is never less before
}

func (d drain) perSecond() float64 { return float64(d.tasks) / d.took.Seconds() }

// drained has the rules of a run release each task of a workflow, on so many cpus as its production had, and end it.
func drained(a asleep) (d drain, err error) {
	began, x := time.Now(), execution.New(a.spec(clustering.Rule{}))
	now := time.Unix(1_700_000_000, 0)
	for !x.Done() {
		all := x.Release(now, execution.Offer{CPUs: shakeCPUs})
		if len(all) == 0 {
			return d, errors.New("tasks are left, and none of them is released")
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
