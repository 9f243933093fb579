package execution

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow/dag"
)

// An open execution begins with no tasks, and gets them one Addition after the other. Each Addition is a Record like
// all others, so that a replay gives the same execution. It is over when it is closed and its tasks are.

// An Addition is tasks that were added, which are alike: Count of them, from index First on. Journals outlive versions
// of corrald: the JSON names stay.
type Addition struct {
	First    int32            `json:"i"`
	Count    int32            `json:"n"`
	Needs    corral.Resources `json:"r"`
	Estimate Msec             `json:"e"`
	Retries  int              `json:"t,omitempty"`
	Once     bool             `json:"once,omitempty"`
	Priority int              `json:"p,omitempty"`
	AtOnce   int              `json:"m,omitempty"` // so many of them run at a time; 0: any number
	After    []Wait           `json:"a,omitempty"` // what all of them wait for
	Unless   []int            `json:"u,omitempty"` // exit statuses that no retry follows
	Body     json.RawMessage  `json:"b,omitempty"` // what they run, which no decision depends on
}

// A Wait is for a task to get so far.
type Wait struct {
	Task int32 `json:"i"`
	When When  `json:"w"`
}

// A When says how far. A task that is cancelled before it begins, or never can begin, counts as started, ended and
// failed.
type When string

const (
	Started   When = "started"
	Ended     When = "ended"
	Succeeded When = "succeeded"
	Unsuccess When = "failed"
)

// whens are all there are: a gate may wait for several things of one task.
var whens = []When{Started, Ended, Succeeded, Unsuccess}

// Takes reports whether tasks may be added.
func Takes(x *Execution) bool { return x.plan.Open && !x.control.grown.closed }

// Size is how many tasks there are.
func Size(x *Execution) int { return len(x.plan.Tasks) }

// grown is what is kept of tasks that were added.
type grown struct {
	closed bool
	at     Msec              // of the record that is applied
	tasks  []grownTask       // by task
	wanted map[int32][]*gate // :: task → the gates that wait for something of it
	news   []int32           // tasks that have begun or ended, of which gates have not heard
}

// A grownTask is what is kept of one of them. These instants are those of the records, so that tasks which no worker
// told of, since they were cancelled or lost, have them, too.
type grownTask struct {
	gate               *gate // nil: it waits for nothing
	added, begun, over Msec  // begun: when a worker was given it last
}

// A gate keeps the tasks of one addition from running until all that they wait for has come. What has come is
// forgotten: a task that ends twice, because it was tried again, is waited for once.
type gate struct {
	first, count int32
	pending      map[Wait]bool
}

// wants reports whether a gate waits for something of a task.
func (g *gate) wants(task int32) bool {
	return slices.ContainsFunc(whens, func(when When) bool { return g.pending[Wait{task, when}] })
}

// awaits reports whether something that a task waits for has not come.
func (g *grown) awaits(i int32) bool {
	gate := g.tasks[i].gate
	return gate != nil && len(gate.pending) > 0
}

// begun notes that a worker was given a task.
func (g *grown) begun(i int32) {
	g.tasks[i].begun = g.at
	g.tell(i)
}

// over notes that a task is done, failed or skipped.
func (g *grown) over(i int32) {
	g.tasks[i].over = g.at
	g.tell(i)
}

// tell has those hear of a task that wait for it.
func (g *grown) tell(i int32) {
	if len(g.wanted[i]) > 0 {
		g.news = append(g.news, i)
	}
}

// want has a gate hear of what it waits for. Gates come one after the other, so that a gate which hears of the task
// already is the last that does.
func (g *grown) want(of *gate, task int32) {
	if all := g.wanted[task]; len(all) > 0 && all[len(all)-1] == of {
		return
	}
	if g.wanted == nil {
		g.wanted = map[int32][]*gate{}
	}
	g.wanted[task] = append(g.wanted[task], of)
}

// add adds tasks. A record that does not follow those before it is repeated, or damaged: it adds nothing.
func add(x *Execution, a *Addition) {
	first := int32(len(x.plan.Tasks))
	if !Takes(x) || a.First != first || a.Count < 1 || a.Count > MostTasks-first {
		return
	}
	rules := &Rules{Priority: a.Priority, UnlessExit: a.Unless}
	if a.AtOnce > 0 {
		x.plan.Limits, x.book.inUse = append(x.plan.Limits, a.AtOnce), append(x.book.inUse, 0)
		rules.Category = len(x.plan.Limits)
	}
	for i := first; i < first+a.Count; i++ {
		x.plan.grow(TaskSpec{
			ID: TaskID(int(i)), CPUs: a.Needs.CPUs, MemoryMiB: a.Needs.MemoryMiB, GPUs: a.Needs.GPUs,
			DiskMiB: a.Needs.DiskMiB, Estimate: max(1, a.Estimate).sub(0), Retries: a.Retries, Once: a.Once,
			Rules: rules,
		})
		x.attempts.tasks = append(x.attempts.tasks, taskState{attempt: x.attempts.floors[i] + 1})
		x.book.of = append(x.book.of, nil)
		x.frontier.missing = append(x.frontier.missing, 0)
	}
	// The graph comes last but for the gate: nodes are ready when they are made, and the gate holds them.
	x.plan.Graph.Grow(int(a.Count))
	x.frontier.nodes.Grow()
	x.control.scopes[0].open += a.Count
	enclose(x.control, a)
	for i := first; i < first+a.Count; i++ {
		x.frontier.more(i, x.control.held(i))
	}
}

// MostTasks is how many tasks an open execution has at most.
const MostTasks = 999_999

// TaskID is the id of a task of an open execution: its number, which counts from 1.
func TaskID(index int) string { return strconv.Itoa(index + 1) }

// grow adds a task, which is a cluster of its own.
func (p *plan) grow(t TaskSpec) {
	i := int32(len(p.Tasks))
	p.Tasks, p.rank = append(p.Tasks, t), append(p.rank, t.Estimate)
	p.members = append(p.members, i)
	p.clusterOf = append(p.clusterOf, int32(len(p.start)-1))
	p.start = append(p.start, int32(len(p.members)))
}

// enclose makes the gate of an addition, if it waits for anything that has not come. What cannot come any more ends its
// tasks with the news of that.
func enclose(c *control, a *Addition) {
	g := &gate{first: a.First, count: a.Count, pending: map[Wait]bool{}}
	for _, w := range a.After {
		if w.Task < 0 || w.Task >= a.First || stands(c, w) == come {
			continue
		}
		g.pending[w] = true
		c.grown.want(g, w.Task)
		if stands(c, w) == vain {
			c.grown.news = append(c.grown.news, w.Task)
		}
	}
	task := grownTask{added: c.grown.at}
	if len(g.pending) > 0 {
		task.gate = g
	}
	for range a.Count {
		c.grown.tasks = append(c.grown.tasks, task)
	}
}

// What has become of a wait.
type standing uint8

const (
	pending standing = iota // it may come
	come
	vain // it cannot come any more, unless the task is tried again
)

// stands says what has become of a wait by now. It looks at the task alone and not at who waits, so all who wait for
// the same are told the same.
func stands(c *control, w Wait) standing {
	state := c.frontier.state(w.Task)
	over := state >= dag.Done
	switch {
	case w.When == Started && (over || c.grown.tasks[w.Task].begun != 0), w.When == Ended && over:
		return come
	case !over || w.When == Started:
		return pending
	case (w.When == Succeeded) == (state == dag.Done):
		return come
	}
	return vain
}

// spread tells gates of what they wait for.
func spread(c *control) {
	for len(c.grown.news) > 0 {
		i := c.grown.news[0]
		c.grown.news = c.grown.news[1:]
		all := c.grown.wanted[i]
		for _, g := range all {
			hear(c, g, i)
		}
		left := slices.DeleteFunc(all, func(g *gate) bool { return !g.wants(i) })
		if c.grown.wanted[i] = left; len(left) == 0 {
			delete(c.grown.wanted, i)
		}
	}
	c.grown.news = nil
}

// hear opens a gate when the last thing has come that it waits for, and ends the tasks behind it when something cannot
// come any more.
func hear(c *control, g *gate, i int32) {
	before, lost := len(g.pending), false
	for _, when := range whens {
		if w := (Wait{i, when}); g.pending[w] {
			switch stands(c, w) {
			case come:
				delete(g.pending, w)
			case vain:
				lost = true
			}
		}
	}
	switch {
	case lost:
		for k := g.first; k < g.first+g.count; k++ {
			if c.frontier.state(k) == dag.Ready {
				never(c, k, i)
			}
		}
	case before > 0 && len(g.pending) == 0:
		for k := g.first; k < g.first+g.count; k++ {
			if c.frontier.state(k) == dag.Ready {
				c.frontier.less(k)
			}
		}
	}
}

// never ends a task that waits in vain for another one.
func never(c *control, i, other int32) {
	how := "did not succeed"
	if c.frontier.state(other) == dag.Done {
		how = "did not fail"
	}
	c.attempts.causes[i] = Never
	c.attempts.notes[i] = fmt.Sprintf("task %s, which it waits for, %s", c.plan.Tasks[other].ID, how)
	c.frontier.dropped(i)
	c.frontier.nodes.Drop(int(i))
	c.leave(i)
}

// loseForGood ends a task that is begun once, and whose worker was lost or had to leave.
func loseForGood(x *Execution, i int32, reason string, at Msec) {
	x.attempts.causes[i] = LostWorker
	why := "it is not begun twice: " + reason
	x.control.conclude(verdict{at: at, unit: i, status: -1, forever: true, why: why})
}

// reopenAll lets all run again that is not done.
func reopenAll(c *control) {
	if !c.plan.Open {
		reopen(c, 0)
		return
	}
	var all []int32
	for i := range c.plan.Tasks {
		if st := c.frontier.state(int32(i)); st == dag.Failed || st == dag.Skipped {
			all = append(all, int32(i))
		}
	}
	retryAdded(c, all)
}

// retryAdded has tasks tried again that are over, however they ended. One that waits for what has not come waits again;
// if that cannot come it stays as it is.
func retryAdded(c *control, tasks []int32) {
	for _, i := range tasks {
		if i < 0 || int(i) >= len(c.plan.Tasks) || c.frontier.state(i) < dag.Done {
			continue
		}
		if _, hopeless := inVain(c, i, nil); hopeless {
			continue
		}
		switch c.frontier.state(i) {
		case dag.Failed:
			c.scopes[0].failed--
			c.attempts.renew(i)
		case dag.Done:
			c.attempts.renew(i)
		}
		delete(c.attempts.causes, i)
		delete(c.attempts.notes, i)
		c.grown.tasks[i].over = 0
		c.frontier.nodes.Reopen(int(i))
		c.scopes[0].open++
		c.frontier.more(i, c.held(i))
	}
	var failed []int
	for _, i := range c.attempts.tally.failed {
		if c.frontier.state(int32(i)) == dag.Failed {
			failed = append(failed, i)
		}
	}
	c.attempts.tally.failed = failed
}

// inVain reports whether a task waits for what cannot come any more, and from which other task, unless that is one of
// those that are tried again, too.
func inVain(c *control, i int32, again map[int32]bool) (other int32, hopeless bool) {
	if g := c.grown.tasks[i].gate; g != nil {
		for w := range g.pending {
			if stands(c, w) == vain && !again[w.Task] {
				other, hopeless = max(other, w.Task), true
			}
		}
	}
	return other, hopeless
}

// retriableAdded is Retriable in an open execution.
func retriableAdded(x *Execution, tasks []int) (over []int32, err error) {
	chosen := make(map[int32]bool, len(tasks))
	for _, i := range tasks {
		chosen[int32(i)] = true
	}
	for _, i := range tasks {
		if x.frontier.state(int32(i)) < dag.Done {
			if wanes(x.control, int32(i)) {
				return nil, refused(x, i, "was cancelled and is just ending; it is tried again once it is over")
			}
			continue
		}
		if other, hopeless := inVain(x.control, int32(i), chosen); hopeless {
			return nil, refused(x, i, "waits for task "+x.plan.Tasks[other].ID+
				", which is over without that; retry that one, too")
		}
		over = append(over, int32(i))
	}
	return unique(over), nil
}

// Past tells in which state a task of an open execution is over, and since when. Of others it is not ok. It costs next
// to nothing beside Task: most tasks of a run that lives long are over, and most questions are about the others.
func Past(x *Execution, index int) (state corral.TaskState, since time.Time, ok bool) {
	st := x.frontier.state(int32(index))
	if !x.plan.Open || st < dag.Done {
		return "", time.Time{}, false
	}
	return corral.TaskState(st.String()), x.control.grown.tasks[index].over.Time(), true
}

// tellGrown adds what is known of a task because it was added.
func tellGrown(x *Execution, i int32, info *TaskInfo) {
	if !x.plan.Open {
		return
	}
	t := x.control.grown.tasks[i]
	info.AddedAt = t.added.Time()
	if x.frontier.state(i) < dag.Done {
		return
	}
	info.OverAt = t.over.Time()
	if t.begun > x.attempts.tasks[i].ended { // no worker has told of the last attempt
		info.StartedAt, info.EndedAt = t.begun.Time(), time.Time{}
	}
}
