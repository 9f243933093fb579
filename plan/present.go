package plan

import (
	"cmp"
	"time"

	"github.com/corral-pilot/corral"
)

// A Present is a pilot that exists, or has been requested, when a plan is made. A plan uses such pilots first and
// requests only what is missing. Their cost does not belong to the plan, because they are already held, or paid for by
// another plan.
//
// A schedule numbers the present pilots after the plan's own; the first one has the number len(Plan.Pilots).
type Present struct {
	Site  string
	Hosts int
	Host  corral.Resources // per host
	Pace                   // of its hosts
	Told  corral.Speed     // by its workers to the cluster, which matches tasks by this speed; 0, as without a plan: 1
	Ready time.Duration    // when its workers are expected; 0: they have joined the cluster
	End   time.Duration    // no task on it may end after this
	Idle  time.Duration    // how long it has had no task
	Keep  time.Duration    // how long it stays without a task; Unbounded: it stays until End
	Doubt float64          // a task starts only if the time until End covers its runtime plus this share of the runtime

	Running []Running // its running tasks; the Runtime of such a task is the remaining time, its Bytes are Here
}

// A Running is a task that runs on a host of a present pilot.
type Running struct{ Task, Host int }

// There is the JSON form of a Present. It omits unlimited values.
type There struct {
	Site      string         `json:"site"`
	Hosts     int            `json:"hosts"`
	CPUs      int            `json:"cpus"` // per host
	MemoryMiB int            `json:"memory_mib,omitempty"`
	GPUs      int            `json:"gpus,omitempty"`
	Ready     corral.Seconds `json:"ready_s"`
	End       corral.Seconds `json:"end_s,omitempty"`
	Idle      corral.Seconds `json:"idle_s,omitempty"`
	Keep      corral.Seconds `json:"keep_s,omitempty"`
	Doubt     float64        `json:"doubt,omitempty"`
	Speed     corral.Speed   `json:"speed,omitempty"` // divides the tasks' runtimes; 0 means 1
	Told      corral.Speed   `json:"told_speed,omitempty"`
	Running   []ThereRunning `json:"running,omitempty"`
}

// A ThereRunning is the JSON form of a Running.
type ThereRunning struct {
	Task string `json:"task"`
	Host int    `json:"host"`
}

func thereOf(q Present, w Work) There {
	t := There{Site: q.Site, Hosts: q.Hosts, CPUs: q.Host.CPUs, MemoryMiB: known(q.Host.MemoryMiB), GPUs: q.Host.GPUs,
		Ready: corral.Seconds(q.Ready), Idle: corral.Seconds(q.Idle), Doubt: q.Doubt, Speed: q.Speed,
		Told: q.Told}
	if q.End < Unbounded {
		t.End = corral.Seconds(max(q.End, time.Millisecond)) // 0 would mean unlimited
	}
	if q.Keep < Unbounded {
		t.Keep = corral.Seconds(q.Keep)
	}
	for _, r := range q.Running {
		t.Running = append(t.Running, ThereRunning{w.Tasks[r.Task].ID, r.Host})
	}
	return t
}

// present decodes a pilot. number maps task IDs to indices; running tasks that are missing from number are dropped.
func (t There) present(number map[string]int) Present {
	q := Present{Site: t.Site, Hosts: t.Hosts, Ready: time.Duration(t.Ready),
		End: cmp.Or(time.Duration(t.End), Unbounded), Idle: time.Duration(t.Idle),
		Keep: cmp.Or(time.Duration(t.Keep), Unbounded), Doubt: t.Doubt, Pace: Pace{Speed: t.Speed}, Told: t.Told,
		Host: corral.Resources{CPUs: t.CPUs, MemoryMiB: cmp.Or(t.MemoryMiB, Unlimited), GPUs: t.GPUs,
			DiskMiB: Unlimited}}
	for _, r := range t.Running {
		if i, ok := number[r.Task]; ok {
			q.Running = append(q.Running, Running{i, r.Host})
		}
	}
	return q
}
