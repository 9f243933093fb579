package execution

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
)

// An open execution begins without tasks; Additions add them. Each Addition is in a Record, so that a replay gives the
// same execution. The execution is over when it is closed and all its tasks are over.

// An Addition adds Count similar tasks, from index First on. Journals outlive versions of corrald, so the JSON names
// must not change.
type Addition struct {
	First    int32            `json:"i"`
	Count    int32            `json:"n"`
	Needs    corral.Resources `json:"r"`
	Estimate Msec             `json:"e"`
	Retries  int              `json:"t,omitempty"`
	Once     bool             `json:"once,omitempty"`
	Priority int              `json:"p,omitempty"`
	AtOnce   int              `json:"m,omitempty"` // maximum number that run at a time; 0: no limit
	After    []Condition      `json:"a,omitempty"` // the events that all of them wait for
	Unless   []int            `json:"u,omitempty"` // exit statuses after which a task is not retried
	Body     json.RawMessage  `json:"b,omitempty"` // their commands, on which no decision depends
}

// A Condition names an event in the life of a task.
type Condition struct {
	Task int32 `json:"i"`
	When When  `json:"w"`
}

// A When is the type of the event. A task that is cancelled before it begins, or can never begin, counts as started,
// ended and failed.
type When string

const (
	Started   When = "started"
	Ended     When = "ended"
	Succeeded When = "succeeded"
	Unsuccess When = "failed"
)

// whens lists all values: a gate may wait for several events of one task.
var whens = []When{Started, Ended, Succeeded, Unsuccess}

// Takes reports whether tasks may be added.
func Takes(x *Execution) bool { return x.plan.Open && !x.additions.closed }

// Size returns the number of tasks.
func Size(x *Execution) int { return len(x.plan.Tasks) }

// additions holds the state of an open execution, apart from its tasks.
type additions struct {
	closed bool
	lives  []life            // by task
	wanted map[int32][]*gate // :: task → the gates that wait for an event of it
	news   []int32           // tasks that have begun or ended since gates were last notified
}

// close ends the additions.
func (as *additions) close() { as.closed = true }

// A life holds the times at which the state of an added task changed. They are the times of the records, so they are
// also known for tasks that were cancelled or lost.
type life struct {
	gate               *gate // nil: the task does not wait
	added, begun, over Msec  // begun: when the task was last given to a worker
}

// add adds tasks. A record that does not continue the sequence is a repetition or damaged, and is ignored.
func (x *Execution) add(a *Addition) {
	first := int32(len(x.plan.Tasks))
	if !Takes(x) || a.First != first || a.Count < 1 || a.Count > MostTasks-first {
		return
	}
	rules := &Rules{Priority: a.Priority, UnlessExit: a.Unless}
	if a.AtOnce > 0 {
		rules.Category = x.plan.addLimit(a.AtOnce)
		x.jobs.addCategory()
	}
	for i := first; i < first+a.Count; i++ {
		x.plan.add(TaskSpec{
			ID: TaskID(int(i)), CPUs: a.Needs.CPUs, MemoryMiB: a.Needs.MemoryMiB, GPUs: a.Needs.GPUs,
			DiskMiB: a.Needs.DiskMiB, Estimate: max(1, a.Estimate).sub(0), Retries: a.Retries, Once: a.Once,
			Rules: rules,
		})
		x.units.add()
		x.frontier.addCluster()
	}
	x.plan.Graph.Grow(int(a.Count))
	x.scopes.at(0).join(a.Count)
	x.addGate(a)
	for i := first; i < first+a.Count; i++ {
		x.place(i)
	}
}

// MostTasks is the maximum number of tasks of an open execution.
const MostTasks = 999_999

// TaskID returns the id of a task of an open execution: its number, counted from 1.
func TaskID(index int) string { return strconv.Itoa(index + 1) }

// add adds a task, which is a cluster of its own.
func (p *plan) add(t TaskSpec) {
	i := int32(len(p.Tasks))
	p.Tasks, p.rank = append(p.Tasks, t), append(p.rank, t.Estimate)
	p.members = append(p.members, i)
	p.clusterOf = append(p.clusterOf, int32(len(p.start)-1))
	p.start = append(p.start, int32(len(p.members)))
}

// addLimit adds a category with a limit, and returns its number in Rules.
func (p *plan) addLimit(atOnce int) int {
	p.Limits = append(p.Limits, atOnce)
	return len(p.Limits)
}

// began records that a task was given to a worker.
func (as *additions) began(i int32, at Msec) {
	as.lives[i].begun = at
	as.announce(i)
}

// ended records that a task is done, failed or skipped.
func (as *additions) ended(i int32, at Msec) {
	as.lives[i].over = at
	as.announce(i)
}

// reopened records that a task is no longer over.
func (as *additions) reopened(i int32) { as.lives[i].over = 0 }

// announce notifies the gates that wait for a task, once the record has been applied.
func (as *additions) announce(i int32) {
	if len(as.wanted[i]) > 0 {
		as.news = append(as.news, i)
	}
}

// loseForGood ends a task that may begin only once and whose worker was lost or had to leave.
func (x *Execution) loseForGood(i int32, reason string, at Msec) {
	x.units.attribute(i, LostWorker)
	why := "it is not begun twice: " + reason
	x.conclude(verdict{at: at, unit: i, status: -1, forever: true, why: why})
}

// reopenAll lets all tasks that are not done run again.
func (x *Execution) reopenAll() {
	if !x.plan.Open {
		x.reopen(0, 0)
		return
	}
	var all []int32
	for i := range int32(len(x.plan.Tasks)) {
		if s := x.units.state(i); s == StateFailed || s == StateSkipped {
			all = append(all, i)
		}
	}
	x.retryAdded(all)
}

// retryAdded reopens tasks that are over, whether or not they succeeded. A task whose gate is closed waits again; a
// task that waits in vain remains unchanged.
func (x *Execution) retryAdded(tasks []int32) {
	for _, i := range tasks {
		if !x.units.has(i) || !x.units.state(i).over() {
			continue
		}
		if _, vain := x.inVain(i, nil); vain {
			continue
		}
		switch x.units.state(i) {
		case StateFailed:
			x.scopes.at(0).forgive()
			x.renew(i)
		case StateDone:
			x.renew(i)
		}
		x.units.attribute(i, "")
		x.units.explain(i, "")
		x.additions.reopened(i)
		x.units.move(i, onReopen)
		x.scopes.at(0).join(1)
		x.place(i)
	}
}

// retriableAdded is Retriable for an open execution.
func retriableAdded(x *Execution, tasks []int) (over []int32, err error) {
	chosen := make(map[int32]bool, len(tasks))
	for _, i := range tasks {
		chosen[int32(i)] = true
	}
	for _, i := range tasks {
		if !x.units.state(int32(i)).over() {
			if x.units.cancelled(int32(i)) {
				return nil, refused(x, i, "was cancelled and is just ending; it is tried again once it is over")
			}
			continue
		}
		if other, vain := x.inVain(int32(i), chosen); vain {
			return nil, refused(x, i, "waits for task "+x.plan.Tasks[other].ID+
				", which is over without that; retry that one, too")
		}
		over = append(over, int32(i))
	}
	return unique(over), nil
}

// Over returns the final state of a task of an open execution, and the time at which it ended; ok is false for other
// tasks. It is much cheaper than Task, which matters in long runs: most of their tasks are over, and most queries are
// about the others.
func Over(x *Execution, index int) (state corral.TaskState, since time.Time, ok bool) {
	i := int32(index)
	if !x.plan.Open || !x.units.state(i).over() {
		return "", time.Time{}, false
	}
	return x.units.state(i).task(), x.additions.lives[i].over.Time(), true
}

// describe adds the times of a task's life to info.
func (as *additions) describe(i int32, u *unit, info *TaskInfo) {
	life := &as.lives[i]
	info.AddedAt = life.added.Time()
	if !u.state.over() {
		return
	}
	info.OverAt = life.over.Time()
	if life.begun > u.ended { // no worker has reported the last attempt
		info.StartedAt, info.EndedAt = life.begun.Time(), time.Time{}
	}
}
