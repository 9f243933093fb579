package plan

import (
	"math"
	"slices"
	"time"
)

// A Pace says how long tasks take on some hosts: what they compute, and what the way of their files takes.
type Pace struct {
	Speed    Speed
	Transfer Transfer
}

// Takes returns for how long a task has its room on a host: from the beginning of the transfer of its inputs until its
// outputs are back.
func (p Pace) Takes(t Task) time.Duration {
	return p.Speed.Takes(t.Runtime) + p.Transfer.Takes(t.Bytes)
}

// A Speed says how fast hosts are beside those that the tasks' Runtimes are for, which are the fastest of a problem: a
// task takes its Runtime ÷ Speed. It is at most 1; 0 stands for 1.
type Speed float64

// Takes returns how long a task of some Runtime takes, in whole milliseconds.
func (s Speed) Takes(runtime time.Duration) time.Duration {
	if s == 0 {
		return runtime
	}
	return time.Duration(float64(runtime) / float64(s)).Round(time.Millisecond)
}

// A Transfer says how the files of a job get to the hosts of a site and back. The zero value is that of hosts that see
// the run's directory, and of those of which nothing is known.
type Transfer struct {
	Latency   time.Duration // of a job, both ways together, however small its files are
	Bandwidth float64       // bytes a second, as one job has it among the others; 0: bytes take no time
}

// Takes returns how long so many bytes travel, in whole milliseconds.
func (t Transfer) Takes(bytes int64) time.Duration {
	if bytes < 0 {
		return 0
	}
	return t.Latency + t.Goes(bytes)
}

// Goes is Takes for what goes with other files of the same job, whose latency counts already.
func (t Transfer) Goes(bytes int64) time.Duration {
	if t.Bandwidth <= 0 || bytes <= 0 {
		return 0
	}
	ms := math.Round(1e3 * float64(bytes) / t.Bandwidth)
	return time.Duration(min(ms, float64(Unbounded/time.Millisecond))) * time.Millisecond
}

// Here stands for the Bytes of a task whose files do not travel any more: it runs already.
const Here = -1

// Quickest returns the work of a problem with each task as it is on the hosts that are best for it: its Runtime is what
// it takes there, the way of its files included, and nothing travels beside that.
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
