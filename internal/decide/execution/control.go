package execution

import (
	"fmt"

	"github.com/corral-pilot/corral/workflow/dag"
)

// A control carries the rules out. It knows of each scope how many of its members are not over, and of each unit with
// rules how far it is:
//
//	idle → pre → queued → body → post → over
//
// A unit is idle until its parents are done. Its PRE script runs, it waits for its category's turn, its process or its
// members run, its POST script runs. A stage that has nothing to do is passed at once; a task is queued while it is
// ready and in no job. What fails goes back to pre for as long as it has retries.
//
// All of that changes by records. Only what was handed out and may be handed out again is not recorded: that a script
// was started, and that a subworkflow has got its category's turn, which shows as soon as anything in it happens.
type control struct {
	plan     *plan
	frontier *frontier
	attempts *attempts
	book     *book

	scopes  []scope
	units   map[int32]*unit // of tasks with scripts
	scripts scripts
	parked  parked  // what waits for its category's turn
	aborted []int32 // scopes that are to be left, when the record has been applied
	kills   []int64 // jobs that workers may have, of which some tasks are not to run any more
	broken  []int32 // subworkflows that failed, in order
	over    []int64 // jobs that ended by something else than what was told of them
	grown   grown
}

// A scope is how far a subworkflow is, or the workflow.
type scope struct {
	unit
	open    int32  // members that are not over, final tasks aside
	last    int32  // final tasks that are not over
	closing bool   // these may run
	failed  int32  // members
	code    int    // exit status of the first of these
	tries   int32  // that failed, since the beginning or since the run was resumed
	abort   *ended // nil: it is not aborted
}

// An ended says which unit aborted a scope, and the exit status that the scope has by that.
type ended struct {
	by     int32
	status int
	told   int // the unit's own
}

type stage uint8

const (
	stageIdle stage = iota
	stagePre
	stageQueued
	stageBody
	stagePost
	stageOver
)

// newControl begins with the units that wait for no other.
func newControl(p *plan, f *frontier, a *attempts, b *book) *control {
	c := &control{plan: p, frontier: f, attempts: a, book: b, scopes: make([]scope, len(p.scope.outer)),
		units: map[int32]*unit{}, scripts: scripts{plan: p, rounds: map[int32]int32{}}}
	c.scopes[0].stage = stageBody
	for i := range p.Tasks {
		if r := p.scope.rules(int32(i)); p.Tasks[i].Done {
			f.nodes.Finish(i)
		} else if r.Pre != nil || r.Post != nil {
			c.units[int32(i)] = &unit{stage: c.plan.scope.first(int32(i))}
		}
	}
	for s := range c.scopes[1:] {
		s := int32(s + 1)
		if p.scope.done(p.scope.unitOf(s)) {
			f.nodes.Finish(p.scope.begin(s))
			f.nodes.Finish(p.scope.end(s))
			c.scopes[s].stage = stageOver
		}
	}
	for s := range c.scopes {
		countMembers(c, int32(s))
	}
	c.enterAll(0)
	f.loose = nil
	f.gather(c.held)
	c.check(0)
	leaveAborted(c)
	return c
}

// rest ends what has to end because of the record that was just applied, and returns the jobs that are over by that.
func rest(c *control) (over []int64) {
	for len(c.aborted)+len(c.frontier.ripe)+len(c.grown.news) > 0 {
		leaveAborted(c)
		reap(c)
		spread(c)
	}
	over, c.over = c.over, nil
	return over
}

// unit returns how far a unit is; nil of a task without scripts.
func (c *control) unit(u int32) *unit {
	if c.plan.scope.isTask(u) {
		return c.units[u]
	}
	return &c.scopes[int(u)-len(c.plan.Tasks)+1].unit
}

// mayRun reports whether a task that is ready and in no job may be in one: its PRE script is done, and if it is a final
// one the others are over.
func (c *control) mayRun(i int32) bool {
	u := c.units[i]
	return (u == nil || u.stage == stageBody) && !c.held(i)
}

// tasks counts the tasks by the states of their nodes. Final tasks that wait for the others count as waiting.
func (c *control) tasks() dag.Counts {
	n := c.frontier.nodes.Counts()
	if c.plan.Open {
		n.Waiting, n.Ready = n.Waiting+c.frontier.lacking, n.Ready-c.frontier.lacking
	}
	if c.plan.scope.inside == nil {
		return n
	}
	var other [dag.Skipped + 1]int // nodes that are not tasks
	for s := range c.scopes {
		if s := int32(s); s != 0 {
			other[c.frontier.nodes.State(c.plan.scope.begin(s))]++
			other[c.frontier.nodes.State(c.plan.scope.end(s))]++
		}
		if sc := &c.scopes[s]; sc.stage == stageBody && !sc.closing {
			n.Waiting, n.Ready = n.Waiting+int(sc.last), n.Ready-int(sc.last)
		}
	}
	n.Waiting, n.Ready = n.Waiting-other[dag.Waiting], n.Ready-other[dag.Ready]
	n.Done, n.Failed, n.Skipped = n.Done-other[dag.Done], n.Failed-other[dag.Failed], n.Skipped-other[dag.Skipped]
	return n
}

// held reports whether task i is a final one that waits for the others, or was added and waits for what it shall.
func (c *control) held(i int32) bool {
	if c.plan.Open {
		return c.grown.awaits(i)
	}
	return c.plan.scope.rules(i).Final && !c.scopes[c.plan.scope.around(i)].closing
}

// settle takes note that nodes became ready or were skipped.
func (c *control) settle(nodes []int) {
	for _, node := range nodes {
		skipped := c.frontier.nodes.State(node) == dag.Skipped
		switch n := len(c.plan.Tasks); {
		case node < n:
			if i := int32(node); skipped || !c.plan.scope.rules(i).Final {
				c.frontier.less(i)
			}
			if skipped {
				c.leave(int32(node))
			}
		case (node-n)%2 == 0 && !skipped:
			c.enter(int32((node-n)/2 + 1))
		case (node-n)%2 == 1 && skipped:
			s := int32((node-n)/2 + 1)
			if c.scopes[s].stage != stageOver {
				c.scopes[s].stage = stageOver
				c.leave(c.plan.scope.unitOf(s))
			}
		}
	}
}

// leave says that a unit is over, for the scope that it is in.
func (c *control) leave(unit int32) {
	s := c.plan.scope.scopeOf(unit)
	if c.plan.scope.rules(unit).Final {
		c.scopes[s].last--
	} else {
		c.scopes[s].open--
	}
	if c.plan.Open {
		c.grown.over(unit)
	}
	c.check(s)
}

// check lets the final tasks of a scope run when its other members are over, and ends the scope when these are, too.
func (c *control) check(s int32) {
	sc := &c.scopes[s]
	if sc.stage == stageQueued && sc.open+sc.last == 0 {
		c.begin(s) // what was to run was cancelled
		return
	}
	if sc.stage != stageBody || sc.open > 0 {
		return
	}
	if sc.last > 0 && !sc.closing {
		sc.closing = true
		first, end := c.plan.scope.tasksIn(s)
		for i := first; i < end; i++ {
			if c.plan.scope.rules(i).Final && c.plan.scope.around(i) == s && c.frontier.state(i) <= dag.Ready {
				c.frontier.less(i)
			}
		}
	}
	if sc.last == 0 && s != 0 {
		c.bodyOver(s)
	}
}

// enter begins a subworkflow whose parents are done.
func (c *control) enter(s int32) {
	sc := &c.scopes[s]
	if sc.stage != stageIdle || c.frontier.nodes.State(c.plan.scope.begin(s)) != dag.Ready {
		return
	}
	if c.plan.scope.rules(c.plan.scope.unitOf(s)).Pre != nil {
		sc.stage = stagePre
		c.scripts.add(c.plan.scope.unitOf(s), &sc.unit)
		return
	}
	c.queue(s)
}

// enterAll begins the subworkflows in a scope whose parents are done.
func (c *control) enterAll(s int32) {
	for k := range c.scopes[1:] {
		if k := int32(k + 1); c.plan.scope.isIn(k, s) {
			c.enter(k)
		}
	}
}

// queue lets a subworkflow wait for its category's turn, if that has a limit and there is something to run.
func (c *control) queue(s int32) {
	unit := c.plan.scope.unitOf(s)
	if category := c.plan.scope.rules(unit).Category; category != 0 && c.scopes[s].open+c.scopes[s].last > 0 {
		c.scopes[s].stage = stageQueued
		urgent := urgency{c.plan.scope.rules(unit).Priority, c.plan.rankOf(s), unit}
		park(c, category, agendum{unit: unit, urgency: urgent})
		return
	}
	c.begin(s)
}

// begin lets the members of a subworkflow run.
func (c *control) begin(s int32) {
	c.scopes[s].stage = stageBody
	c.book.use(c.plan.scope.rules(c.plan.scope.unitOf(s)).Category, 1)
	c.settle(c.frontier.nodes.Finish(c.plan.scope.begin(s)))
	c.check(s)
}

// reach begins the subworkflows that a unit is in and of which only their category's turn was missing: something of
// them is recorded, so they had it.
func (c *control) reach(unit int32) {
	if s := c.plan.scope.scopeOf(unit); s != 0 {
		c.reach(c.plan.scope.unitOf(s))
		if c.scopes[s].stage == stageQueued {
			c.begin(s)
		}
	}
}

// bodyOver goes on with a subworkflow whose members are over.
func (c *control) bodyOver(s int32) {
	sc, unit := &c.scopes[s], c.plan.scope.unitOf(s)
	r := c.plan.scope.rules(unit)
	c.book.use(r.Category, -1)
	status := statusOf(c, s)
	why := ""
	if status != 0 {
		why = fmt.Sprintf("exit status %d", status)
	}
	sc.stage, sc.exit, sc.why = stageOver, status, why
	if r.Post != nil {
		sc.stage = stagePost
		c.scripts.add(unit, &sc.unit)
		return
	}
	c.conclude(verdict{unit: unit, status: status, done: status == 0, why: why})
}
