package plan

import (
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// A Pace determines how long tasks take on given hosts: it covers their computation and the transfer of their files.
type Pace struct {
	Speed    corral.Speed
	Transfer Transfer
}

// Takes returns how long a task occupies its host: from the beginning of the transfer of its inputs until its outputs
// are back.
func (p Pace) Takes(t Task) time.Duration {
	return p.Speed.Takes(t.Runtime) + p.Transfer.Takes(t.Bytes)
}

// A Transfer describes how fast a job's files travel to the hosts of a site and back. Its zero value is for hosts that
// share the run's directory and for hosts whose transfer parameters are not known.
type Transfer struct {
	Latency   time.Duration // per job, both ways together, regardless of size
	Bandwidth float64       // bytes per second available to one job among others; 0: the size does not matter
}

// Takes returns how long a transfer of this size takes, in whole milliseconds.
func (t Transfer) Takes(bytes int64) time.Duration {
	if bytes < 0 {
		return 0
	}
	return t.Latency + t.Goes(bytes)
}

// Goes returns the transfer time without the latency, for files that share a job, and thus the latency, with others.
func (t Transfer) Goes(bytes int64) time.Duration {
	if t.Bandwidth <= 0 || bytes <= 0 {
		return 0
	}
	ms := math.Round(1e3 * float64(bytes) / t.Bandwidth)
	return time.Duration(min(ms, float64(Unbounded/time.Millisecond))) * time.Millisecond
}

// Here is the value of Bytes for a running task, whose files need no further transfer.
const Here = -1

// Quickest returns the work of a problem with each task at the pace of its fastest hosts: its Runtime is the time that
// it takes there, file transfer included, so that no further transfer is needed.
func Quickest(p Problem) Work {
	var paces []Pace
	for i := range p.Sites {
		paces = append(paces, p.Sites[i].Pace)
	}
	for i := range p.Present {
		paces = append(paces, p.Present[i].Pace)
	}
	paces = slices.Compact(paces)
	if len(paces) == 0 || slices.Contains(paces, Pace{}) {
		return p.Work
	}
	quick := p.Work
	quick.Tasks = slices.Clone(p.Work.Tasks)
	for i := range quick.Tasks {
		t := &quick.Tasks[i]
		least := paces[0].Takes(*t)
		for _, other := range paces[1:] {
			least = min(least, other.Takes(*t))
		}
		t.Runtime, t.Bytes = least, Here
	}
	return quick
}
