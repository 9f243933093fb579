package queue

import (
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/availability"
)

// A Job is one of a queue. Times count from the beginning of the simulation.
type Job struct {
	ID         int // of those that others refer to: open ones
	User       int
	Submit     time.Duration
	Processors int
	Requested  time.Duration // for how long it asks; it is killed then
	Runtime    time.Duration // how long it would run in truth; Open: until Finish
}

// Open is the runtime of a job that ends when its owner says so.
const Open = availability.Forever

// A Policy says which jobs start when.
type Policy string

// The policies. The package's comment says what each does.
const (
	FCFS         Policy = "fcfs"
	EASY         Policy = "easy"
	Conservative Policy = "conservative"
)

// Policies are all of them.
var Policies = []Policy{FCFS, EASY, Conservative}

// Valid reports whether p is a policy.
func (p Policy) Valid() bool { return slices.Contains(Policies, p) }

// A Machine is processors and the rules by which jobs get them.
type Machine struct {
	Processors int
	Policy     Policy
	MaxUserRun int           // jobs of a user that run at once (PBS: max_user_run); 0: no limit
	Walltime   time.Duration // that a job may request (PBS: resources_max.walltime); 0: no limit
	Interval   time.Duration // passes are at its multiples only; 0: whenever a job comes or ends
}

// Refuses says why the machine never runs a job; empty: it can.
func (m Machine) Refuses(j Job) string {
	switch {
	case j.Processors < 1:
		return fmt.Sprintf("it asks for %d processors", j.Processors)
	case j.Processors > m.Processors:
		return fmt.Sprintf("it asks for %d processors of %d", j.Processors, m.Processors)
	case j.Requested <= 0:
		return fmt.Sprintf("it requests %s", j.Requested)
	case m.Walltime > 0 && j.Requested > m.Walltime:
		return fmt.Sprintf("it requests %s of at most %s", j.Requested, m.Walltime)
	}
	return ""
}

// next is the first instant, not before at, at which there may be a pass.
func (m Machine) next(at time.Duration) time.Duration {
	if m.Interval <= 0 {
		return at
	}
	if over := at % m.Interval; over > 0 {
		return at - over + m.Interval
	}
	return at
}

// Held is when a job held its processors.
type Held struct {
	Job
	Start, End time.Duration
}

// Wait is how long it waited.
func (h Held) Wait() time.Duration { return h.Start - h.Submit }

// Replay plays jobs, in the order of their submission, on an empty machine until all have ended, and returns when each
// ran, by its index. Those that the machine refuses have a negative Start. None may be Open.
func Replay(m Machine, jobs []Job) []Held {
	all := make([]Held, len(jobs))
	numbered := slices.Clone(jobs)
	for i := range numbered {
		numbered[i].ID = i
		all[i] = Held{Job: jobs[i], Start: -1, End: -1}
	}
	q := New(m, numbered)
	q.Advance(Open, func(j Job, at time.Duration) {
		all[j.ID].Start, all[j.ID].End = at, at+min(j.Runtime, j.Requested)
	})
	return all
}

// Load is the share of a machine's processor time that jobs take, from the first to the last submission. They must be
// in the order of their submission; of fewer than two it is 0.
func Load(jobs []Job, processors int) float64 {
	if len(jobs) < 2 {
		return 0
	}
	var work float64
	for _, j := range jobs {
		work += float64(j.Processors) * min(j.Runtime, j.Requested).Seconds()
	}
	return work / float64(processors) / (jobs[len(jobs)-1].Submit - jobs[0].Submit).Seconds()
}

// States plays a background on a machine and returns the queue as it is at some instants, in their order, which is that
// of time.
func States(m Machine, background []Job, instants []time.Duration) []*Queue {
	q := New(m, background)
	all := make([]*Queue, len(instants))
	for i, at := range instants {
		q.Advance(at, nil)
		all[i] = q.Clone()
	}
	return all
}
