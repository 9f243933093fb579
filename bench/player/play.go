package main

import (
	"cmp"
	"container/heap"
	"slices"
)

// rules are the settings of a play that do not depend on the plan's pilots.
type rules struct {
	hop    seconds // from a task's readiness to its start on a free worker
	reuse  seconds // from a task's end to the start of a waiting one in its place; 0: the same as hop
	gap    seconds // between two starts in the whole cluster
	leave  seconds // from a pilot's decision to leave to the end of its job
	idle   seconds // a pilot without work leaves after this time
	start  seconds // start margin: a task must end this long before its worker leaves
	clock  bool    // later pilots are submitted by the clock, not by the run's progress
	factor float64 // for the assumed waits

	reserve bool // workers leave when those of real pilots do, not by the plan's margin
}

// A game is a plan with its workflow and its sites, ready to be played any number of times.
type game struct {
	rules
	tasks    []task
	pilots   []request // in the order of the plan
	first    [][]int   // :: pilot → the tasks that it was requested for, by the schedule
	lead     []seconds // :: pilot → the planned time from its submission until those tasks are ready
	at       []*site   // :: pilot → its queue
	sites    map[place]*site
	present  []present
	begun    []resumption        // the tasks that run on them
	transfer map[string]transfer // :: site → the way of files
	goal     goal
	unit     string // of all prices
}

// A resumption is a task that runs on a pilot from the beginning.
type resumption struct {
	pilot, host, task int
	end               seconds
}

// luck holds the random part of a play. The zero value stands for estimates and waits that come true.
type luck struct {
	errors []float64 // :: task → actual runtime ÷ estimate
	waits  []float64 // :: pilot → quantile of its wait
}

// A run is one play in progress.
type run struct {
	*game
	luck
	now       seconds
	events    events     // that are still to happen
	serial    int        // number of the latest event
	tasks     []progress // hides the game's: the state of each task
	queue     []int      // ready tasks that no worker has, the highest rank first
	pilots    []*pilot   // hides the game's: the state of each pilot, those present last
	queues    map[*site]*held
	left      int     // tasks that are not done
	unstarted int     // tasks that no worker has, ready or not
	running   int     // tasks that a worker has
	nextStart seconds // earliest start by the cluster's rate
	instant   int     // number of the instant, which dates forecasts
	submits   int     // pilots submitted so far
	tally
}

// A tally counts what a plan should not need.
type tally struct {
	Killed     int `json:"killed_tasks"`       // executions cut off at the end of a walltime
	Forced     int `json:"forced_submissions"` // pilots submitted because the run had nothing else to wait for
	Violations int `json:"node_violations"`    // pilots whose hosts provably did not fit the nodes at their time
	Undecided  int `json:"undecided_packings"` // no packing was found, but none is proved impossible
}

// A progress is the state of a task.
type progress struct {
	missing  int     // parents that are not done
	ready    seconds // since when no parent is missing, or since it was cut off
	on       *host   // nil: no worker has it
	expected seconds // its end by its estimate, while a worker has it
	start    seconds // of the latest execution, on the host of this number of this pilot
	where    int
	host     int
	end      seconds // once it is done
	life     int     // number of its executions; an event of an earlier one is void
	done     bool
	since    seconds // since when later tasks have been overtaking it; never: they have not
	kept     *host   // kept free for it; nil: none
	forecast seconds // of its readiness, valid at the instant asked
	fixed    seconds // the part of the forecast that does not move
	asked    int
}

// play plays the plan once.
func (g *game) play(l luck) *run {
	r := &run{game: g, luck: l, tasks: make([]progress, len(g.tasks)), left: len(g.tasks), unstarted: len(g.tasks),
		queues: map[*site]*held{}}
	for i, t := range g.tasks {
		r.tasks[i].since = never
		if r.tasks[i].missing = len(t.parents); r.tasks[i].missing == 0 {
			r.queue = append(r.queue, i)
		}
	}
	slices.SortFunc(r.queue, r.byRank)
	r.enter()
	r.push(0, wake, nil, 0)
	for r.left > 0 && len(r.events) > 0 {
		r.step()
	}
	r.close()
	return r
}

// step handles all events of the next instant, and then decides what follows from them.
func (r *run) step() {
	r.now = r.events[0].at
	r.instant++
	r.dismiss() // a pilot whose time without work is over takes none that becomes ready at this instant
	for len(r.events) > 0 && r.events[0].at == r.now {
		e := heap.Pop(&r.events).(event)
		switch e.kind {
		case ended:
			r.finish(e.number, e.life)
			r.match() // before other tasks end at this instant
		case expired:
			r.expire(e.pilot)
		case over:
			r.end(e.pilot)
		case due:
			r.begin(e.pilot)
		case joined:
			r.join(e.pilot)
		}
	}
	if r.left == 0 {
		return
	}
	r.match()
	r.dismiss()
	r.submitDue()
	r.force()
}

// finish ends an execution of a task. Its worker takes the next ready task; then the children become ready whose other
// parents are done.
func (r *run) finish(i, life int) {
	t := &r.tasks[i]
	if t.on == nil || t.life != life {
		return
	}
	h := t.on
	r.free(i)
	t.done, t.end = true, r.now
	r.left--
	if h.pilot.state == serving {
		r.fill(h)
	}
	for _, c := range r.game.tasks[i].children {
		if r.tasks[c].missing--; r.tasks[c].missing == 0 {
			r.enqueue(c)
		}
	}
}

// free takes a task from its worker.
func (r *run) free(i int) {
	h := r.tasks[i].on
	r.tasks[i].on = nil
	h.free = h.free.plus(r.game.tasks[i].needs)
	h.freed = r.now
	h.tasks = slices.DeleteFunc(h.tasks, func(j int) bool { return j == i })
	r.running--
	if h.pilot.running--; h.pilot.running == 0 {
		h.pilot.rest(r)
	}
}

// enqueue adds a ready task to the queue.
func (r *run) enqueue(i int) {
	r.tasks[i].ready = r.now
	at, _ := slices.BinarySearchFunc(r.queue, i, r.byRank)
	r.queue = slices.Insert(r.queue, at, i)
}

// byRank orders tasks by upward rank, the highest first; ties by the time since when they have been ready, then by
// topological order.
func (r *run) byRank(i, j int) int {
	a, b := &r.game.tasks[i], &r.game.tasks[j]
	return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(r.tasks[i].ready, r.tasks[j].ready), a.position-b.position)
}

// forecastOf returns when a task will be ready if every task from now on starts as soon as its parents are done. Cpus
// are not counted, so that no forecast is too late. The part of the forecast that follows from running tasks is fixed:
// it does not move while the play's clock runs. It is 0 if no running task matters.
func (r *run) forecastOf(i int) (at, fixed seconds) {
	t := &r.tasks[i]
	switch {
	case t.missing == 0:
		return t.ready, 0
	case t.asked == r.instant:
		return t.forecast, t.fixed
	}
	at = r.now
	for _, p := range r.game.tasks[i].parents {
		switch parent := &r.tasks[p]; {
		case parent.done:
		case parent.on != nil:
			at, fixed = max(at, parent.expected), max(fixed, parent.expected)
		default:
			ready, running := r.forecastOf(p)
			estimate := r.hop + r.game.tasks[p].estimate
			at = max(at, max(r.now, ready)+estimate)
			if running > 0 {
				fixed = max(fixed, running+estimate)
			}
		}
	}
	t.forecast, t.fixed, t.asked = at, fixed, r.instant
	return at, fixed
}

// startOn returns when a task would start on a worker that gets it now: a hop after it was ready, and a hop from now,
// or less if a task has just ended there.
func (r *run) startOn(h *host, i int) seconds {
	turn := r.hop
	if r.reuse > 0 && h.freed == r.now {
		turn = min(r.hop, r.reuse)
	}
	return max(r.tasks[i].ready+r.hop, r.now+turn, r.nextStart)
}

// takes returns how long a task occupies a worker if its runtime is its estimate times a factor.
func (r *run) takes(h *host, i int, factor float64) seconds {
	return r.game.takes(h.pilot.site, h.pilot.speed, i, factor)
}

func (g *game) takes(site string, speed float64, i int, factor float64) seconds {
	t := &g.tasks[i]
	way := g.transfer[site]
	d := way.Latency
	if way.Bandwidth > 0 {
		d += second.times(t.bytes / way.Bandwidth)
	}
	return d + t.estimate.times(factor/speed)
}

// assign gives a task to a worker. Its actual end may differ from the expected one.
func (r *run) assign(i int, h *host) {
	start := r.startOn(h, i)
	factor := 1.
	if r.errors != nil {
		factor = r.errors[i]
	}
	if r.gap > 0 {
		r.nextStart = start + r.gap
	}
	r.tasks[i].start = start
	r.book(i, h, start+r.takes(h, i, 1), start+r.takes(h, i, factor))
}

// book makes a task run on a worker until it ends.
func (r *run) book(i int, h *host, expected, end seconds) {
	t := &r.tasks[i]
	t.on, t.expected, t.life = h, expected, t.life+1
	t.where, t.host = h.pilot.number, slices.Index(h.pilot.hosts, h)
	h.free = h.free.minus(r.game.tasks[i].needs)
	h.tasks = append(h.tasks, i)
	h.pilot.running++
	r.running++
	r.unstarted--
	r.serial++
	heap.Push(&r.events, event{end, ended, r.serial, nil, i, t.life})
}

// The kinds of events, in the order in which those of one instant are handled: a worker may take tasks that become
// ready at the instant at which it comes, a task that ends at the end of its worker's time is done, and a pilot that
// ends leaves its nodes to one that starts.
const (
	joined = iota
	ended
	expired
	over
	due
	wake // nothing happens, but decisions are due
)

// An event is something that happens at a time: to a task if its kind is ended, else to a pilot.
type event struct {
	at     seconds
	kind   int
	serial int    // events of equal time and kind happen in the order in which they were created
	pilot  *pilot // nil for tasks
	number int    // of the task
	life   int    // of the task's execution
}

func (r *run) push(at seconds, kind int, p *pilot, number int) {
	r.serial++
	heap.Push(&r.events, event{max(at, r.now), kind, r.serial, p, number, 0})
}

// events is a heap by time, then kind, then order of creation.
type events []event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }

func (e events) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), e[i].kind-e[j].kind, e[i].serial-e[j].serial) < 0
}

// Pop removes the last element, as package heap requires.
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
