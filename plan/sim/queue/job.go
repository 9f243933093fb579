package queue

import (
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/slot"
)

// A Job is a job in a queue. Instants are relative to the beginning of the simulation.
type Job struct {
	ID         int // identifies an open job to Finish
	User       int
	Submit     time.Duration
	Processors int
	Requested  time.Duration // requested time, after which the job is killed
	Runtime    time.Duration // actual runtime; Open: until Finish
}

// Open is the runtime of a job that ends when its owner finishes it.
const Open = slot.Forever

// A Discipline decides when jobs start.
type Discipline string

// These are the disciplines, which the package comment describes.
const (
	FCFS         Discipline = "fcfs"
	EASY         Discipline = "easy"
	Conservative Discipline = "conservative"
)

// Policies lists all disciplines.
var Policies = []Discipline{FCFS, EASY, Conservative}

// Valid reports whether p is one of them.
func (p Discipline) Valid() bool { return slices.Contains(Policies, p) }

// A Machine is a parallel machine: its number of processors and the rules for their use.
type Machine struct {
	Processors int
	Policy     Discipline
	MaxUserRun int           // maximum number of running jobs per user (PBS: max_user_run); 0: no limit
	Walltime   time.Duration // maximum requested time (PBS: resources_max.walltime); 0: no limit
	Interval   time.Duration // passes happen only at multiples of it; 0: whenever a job arrives or ends
}

// Refuses returns the reason why the machine can never run a job, or "" if it can.
func (m Machine) Refuses(j Job) string {
	switch {
	case j.Processors < 1:
		return fmt.Sprintf("it requests %d processors", j.Processors)
	case j.Processors > m.Processors:
		return fmt.Sprintf("it requests %d processors, but there are %d", j.Processors, m.Processors)
	case j.Requested <= 0:
		return fmt.Sprintf("it requests %s", j.Requested)
	case m.Walltime > 0 && j.Requested > m.Walltime:
		return fmt.Sprintf("it requests %s, but at most %s is allowed", j.Requested, m.Walltime)
	}
	return ""
}

// next returns the first instant, at or after at, at which a pass may happen.
func (m Machine) next(at time.Duration) time.Duration {
	if m.Interval <= 0 {
		return at
	}
	if over := at % m.Interval; over > 0 {
		return at - over + m.Interval
	}
	return at
}

// Held is a job together with the times from which and until which it held its processors.
type Held struct {
	Job
	Start, End time.Duration
}

// Wait returns how long the job waited.
func (h Held) Wait() time.Duration { return h.Start - h.Submit }

// Replay runs jobs, which must be sorted by submission, on an empty machine until all have ended, and returns when each
// job ran, in the same order. Jobs that the machine refuses have a negative Start. No job may be Open.
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

// Load returns the share of a machine's processor time, from the first to the last submission, that jobs need. The jobs
// must be sorted by submission; the result is 0 for fewer than two jobs.
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

// States simulates a background on a machine and returns the state of the queue at each of the given instants, which
// must be in ascending order.
func States(m Machine, background []Job, instants []time.Duration) []*Queue {
	q := New(m, background)
	all := make([]*Queue, len(instants))
	for i, at := range instants {
		q.Advance(at, nil)
		all[i] = q.Clone()
	}
	return all
}
