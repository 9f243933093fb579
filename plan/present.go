package plan

import (
	"cmp"
	"time"

	"github.com/corral-pilot/corral"
)

// A Present is a pilot that is there when a plan is made, or that was asked for before. A plan uses it first, and asks
// only for what is missing beyond it. What it costs is not the plan's: it is held already, or paid for by another plan.
//
// In a schedule the present pilots are numbered after the plan's own: the first one is number len(Plan.Pilots).
type Present struct {
	Site  string
	Hosts int
	Host  corral.Resources // what each host offers
	Pace                   // of its hosts
	Ready time.Duration    // when its workers are expected; 0: they are there
	End   time.Duration    // no task on it may end later
	Idle  time.Duration    // for how long it has had no task
	Keep  time.Duration    // it leaves once it has had no task for longer; Unbounded: it stays until End
	Doubt float64          // tasks begin only where End leaves time for their runtime and this share of it

	Running []Running // what it has; the Runtime of such a task is what is left of it, its Bytes are Here
}

// A Running says which task a host of a present pilot has.
type Running struct{ Task, Host int }

// There is a Present as it is written down: what has no limit is left out.
type There struct {
	Site      string         `json:"site"`
	Hosts     int            `json:"hosts"`
	CPUs      int            `json:"cpus"` // of each host
	MemoryMiB int            `json:"memory_mib,omitempty"`
	GPUs      int            `json:"gpus,omitempty"`
	Ready     corral.Seconds `json:"ready_s"`
	End       corral.Seconds `json:"end_s,omitempty"`
	Idle      corral.Seconds `json:"idle_s,omitempty"`
	Keep      corral.Seconds `json:"keep_s,omitempty"`
	Doubt     float64        `json:"doubt,omitempty"`
	Speed     Speed          `json:"speed,omitempty"` // by which the tasks' runtimes are divided; 0: 1
	Running   []ThereRunning `json:"running,omitempty"`
}

// A ThereRunning is a Running as it is written down.
type ThereRunning struct {
	Task string `json:"task"`
	Host int    `json:"host"`
}

func thereOf(q Present, w Work) There {
	t := There{Site: q.Site, Hosts: q.Hosts, CPUs: q.Host.CPUs, MemoryMiB: known(q.Host.MemoryMiB), GPUs: q.Host.GPUs,
		Ready: corral.Seconds(q.Ready), Idle: corral.Seconds(q.Idle), Doubt: q.Doubt, Speed: q.Speed}
	if q.End < Unbounded {
		t.End = corral.Seconds(q.End)
	}
	if q.Keep < Unbounded {
		t.Keep = corral.Seconds(q.Keep)
	}
	for _, r := range q.Running {
		t.Running = append(t.Running, ThereRunning{w.Tasks[r.Task].ID, r.Host})
	}
	return t
}

// present is what was written down; number has the indices of tasks. A task that is not among them is left out.
func (t There) present(number map[string]int) Present {
	q := Present{Site: t.Site, Hosts: t.Hosts, Ready: time.Duration(t.Ready),
		End: cmp.Or(time.Duration(t.End), Unbounded), Idle: time.Duration(t.Idle),
		Keep: cmp.Or(time.Duration(t.Keep), Unbounded), Doubt: t.Doubt, Pace: Pace{Speed: t.Speed},
		Host: corral.Resources{CPUs: t.CPUs, MemoryMiB: cmp.Or(t.MemoryMiB, Unlimited), GPUs: t.GPUs,
			DiskMiB: Unlimited}}
	for _, r := range t.Running {
		if i, ok := number[r.Task]; ok {
			q.Running = append(q.Running, Running{i, r.Host})
		}
	}
	return q
}
