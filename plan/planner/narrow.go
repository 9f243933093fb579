package planner

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A narrowing searches for the smallest number of hosts of one kind on which a schedule meets the deadline. This is the
// problem of Byun, Kee, Kim, Deelman and Maeng (BTS: Resource capacity estimate for time-targeted science workflows,
// Journal of Parallel and Distributed Computing 71, 2011). For a number of hosts it tries in turn:
//
//	0  the list schedule by upward rank, forward
//	1  the same backward: the list schedule of the graph with all edges reversed, which places tasks late
//	2… both alternately, with randomly perturbed priorities
//
// Each schedule is then shortened: by moving its tasks, see tasks.shorten, if hosts are alike; otherwise by alternating
// forward and backward list schedules, each with priorities from the previous one (Li and Willis: An iterative
// scheduling technique for resource-constrained project scheduling, European Journal of Operational Research 56, 1992).
//
// The result is always a forward schedule on the hosts' lines, so that pilots are released between tasks as in any
// other plan. It does not depend on the number of processors of the machine.
type narrowing struct {
	p     *planning
	order []share // hosts, in the order in which they are used
	back  *tasks  // with all edges reversed
	left  int     // tries that remain
	alike int     // tasks per host at a time if hosts are alike, see uniform; otherwise 0
	ready time.Duration
}

// triesTasks bounds the work: tries × tasks. batch is the number of tries between two checks for success; mostTries is
// the maximum number of tries for one number of hosts.
const (
	triesTasks = 1_000_000
	batch      = 4
	mostTries  = 100
)

// narrow returns the outcomes it finds whose peak of cpus is lower than that of any known outcome within the goal.
func (p *planning) narrow(known []outcome, bound *int) (found []outcome) {
	if p.Goal.Objective != plan.CPUs || bound == nil || p.Goal.Static {
		return nil
	}
	least := math.MaxInt
	for _, o := range known {
		if excess(p.Goal, o) == "" {
			least = min(least, o.peak)
		}
	}
	back := p.tasks.reversed()
	for _, cpus := range p.hostSizes() {
		for _, order := range p.orders(cpus) {
			limit := 0
			for _, s := range order {
				limit += s.count
			}
			n := &narrowing{p: p, order: order, back: back, left: max(16, triesTasks/len(p.Work.Tasks))}
			n.alike, n.ready = n.uniform()
			limit = min(limit, p.mostHosts(cpus), (least-1)/cpus)
			if o, ok := n.search(max(1, (*bound+cpus-1)/cpus), limit); ok {
				found = append(found, o)
				least = min(least, o.peak)
			}
		}
	}
	return found
}

// reversed returns the tasks with all edges reversed.
func (t *tasks) reversed() *tasks {
	var edges [][2]int
	for i := range t.work.Tasks {
		for _, child := range t.work.Graph.Children(i) {
			edges = append(edges, [2]int{child, i})
		}
	}
	work, quick := t.work, t.quick
	var err error
	if work.Graph, err = dag.New(len(work.Tasks), edges); err != nil {
		panic(err) // unreachable: reversing edges does not create a cycle
	}
	quick.Graph = work.Graph
	return newTasks(work, quick)
}

// uniform returns the number of tasks per host and the time when hosts are ready if all hosts are interchangeable: they
// are ready at the same time and stay until the deadline, all sites have the same pace, and either all tasks have equal
// needs, or no host has room for two tasks. Otherwise it returns 0.
func (n *narrowing) uniform() (alike int, ready time.Duration) {
	deadline := time.Duration(n.p.Goal.Deadline)
	if n.p.Cluster.Rate > 0 {
		return 0, 0
	}
	one := slices.Clone(n.order)
	for i := range one {
		one[i].count = 1
	}
	for i, l := range n.p.lines(one, 0) {
		at := slotsOf(l.host, n.p.tasks.needs)
		closed := slices.ContainsFunc(l.site.Closed, func(c plan.Span) bool { return c.From < deadline })
		if i == 0 {
			alike, ready = at, l.ready
		}
		other := slices.ContainsFunc(n.p.Sites, func(s plan.Site) bool { return s.Pace != l.site.Pace })
		if at != alike || l.ready != ready || closed || other || l.site.Speed != 0 ||
			longest(l.site, l.leave) < deadline-ready {
			return 0, 0
		}
	}
	return alike, ready
}

// slotsOf returns how many tasks a host can run at a time, or 0 if that depends on their needs.
func slotsOf(host corral.Resources, needs []corral.Resources) int {
	if len(needs) == 1 {
		slots := 0
		for room := host; slots < host.CPUs && needs[0].FitIn(room); room = room.Minus(needs[0]) {
			slots++
		}
		return slots
	}
	for _, a := range needs {
		for _, b := range needs {
			if a.Plus(b).FitIn(host) {
				return 0
			}
		}
	}
	return 1
}

// search returns the outcome with the fewest hosts between least and most: it first tries unperturbed priorities, then
// perturbed ones for smaller numbers of hosts.
func (n *narrowing) search(least, most int) (best outcome, ok bool) {
	for _, tries := range []int{2, mostTries} {
		most = fewestHosts(least, most, func(hosts int) bool {
			o, found := n.attempt(hosts, tries)
			if found {
				best, ok = o, true
			}
			return found
		}) - 1
	}
	return best, ok
}

// fewestHosts returns the smallest number between least and most that suffices, or most + 1. It assumes that a larger
// number also suffices, and tries numbers close to least first.
func fewestHosts(least, most int, suffices func(hosts int) bool) int {
	for step := 1; least <= most; step *= 2 {
		at := min(most, least+step-1)
		if suffices(at) {
			most = at - 1
			break
		}
		least = at + 1
	}
	for least <= most {
		if middle := (least + most) / 2; suffices(middle) {
			most = middle - 1
		} else {
			least = middle + 1
		}
	}
	return least
}

// attempt makes tries for a number of hosts until one succeeds. It runs batches in parallel and takes the first success
// of a batch.
func (n *narrowing) attempt(hosts, tries int) (outcome, bool) {
	turn := make(chan struct{}, runtime.GOMAXPROCS(0))
	for first := 0; first < tries && n.left > 0 && n.p.ctx.Err() == nil; first += batch {
		some := min(batch, tries-first)
		n.left -= some
		outcomes, found := make([]outcome, some), make([]bool, some)
		var wg sync.WaitGroup
		for k := range some {
			turn <- struct{}{}
			wg.Go(func() {
				outcomes[k], found[k] = n.try(hosts, first+k)
				<-turn
			})
		}
		wg.Wait()
		if k := slices.Index(found, true); k >= 0 {
			return outcomes[k], true
		}
	}
	return outcome{}, false
}

// try makes one try. If multi-host pilots wait longer than single hosts and delay the plan, it tries again with a
// deadline that is earlier by the delay.
func (n *narrowing) try(hosts, number int) (outcome, bool) {
	c := candidate(take(n.order, hosts))
	for wanted, rounds := time.Duration(n.p.Goal.Deadline), 3; rounds > 0; rounds-- {
		s := n.schedule(c, number, wanted)
		if s == nil || s.makespan > wanted {
			return outcome{}, false
		}
		o := n.p.gather(c, s)
		o.schedule = s
		if excess(n.p.Goal, o) == "" && o.peak <= hosts*n.order[0].host.CPUs && (o.late == 0 || !c.timed()) {
			return o, true
		}
		if o.late == 0 {
			return outcome{}, false
		}
		wanted = time.Duration(n.p.Goal.Deadline) - o.late
	}
	return outcome{}, false
}

// schedule returns the schedule of try number k on a candidate's hosts, or nil. The schedule may be longer than wanted.
func (n *narrowing) schedule(c candidate, k int, wanted time.Duration) *schedule {
	forward, backward := n.p.tasks, n.back
	if k >= 2 {
		rng := rand.New(rand.NewPCG(n.p.seed, uint64(k)))
		forward, backward = forward.disturbed(rng, k), backward.disturbed(rng, k)
	}
	var start timing
	var s *schedule
	if k%2 == 0 {
		s = list(forward, n.p.Cluster, n.p.lines(c, 0))
		if s.placed < len(n.p.Work.Tasks) {
			return nil
		}
		if s.makespan <= wanted {
			return s
		}
		start = s.start
	} else {
		start = n.late(backward, c)
	}
	if n.alike > 0 {
		room := slots{n.alike * len(n.p.lines(c, 0)), n.ready, n.p.Cluster.Hop}
		moved := n.place(n.p.tasks.shorten(start, n.back, room, wanted), c)
		if moved == nil || s != nil && s.makespan < moved.makespan {
			return s // it uses the actual delay between tasks, unlike slots
		}
		return moved
	}
	return n.iterate(start, c, wanted)
}

// late returns the starts of the tasks in a backward list schedule.
func (n *narrowing) late(back *tasks, c candidate) timing {
	start := list(back, n.p.Cluster, n.ideal(c)).start
	return back.mirrored(start, back.last(start)+n.p.Cluster.Hop)
}

// ideal returns the hosts of a candidate as if they were always available.
func (n *narrowing) ideal(c candidate) []*line {
	lines := n.p.lines(c, 0)
	for _, l := range lines {
		l.site, l.ready, l.keep = &plan.Site{Walltime: plan.Unbounded, Pace: l.site.Pace}, 0, plan.Unbounded
	}
	return lines
}

// iterate alternates forward and backward list schedules. Each gives priority to the tasks that are closest to its own
// beginning in the previous schedule.
func (n *narrowing) iterate(start timing, c candidate, wanted time.Duration) *schedule {
	var best *schedule
	for {
		s := list(n.p.tasks.by(start), n.p.Cluster, n.p.lines(c, 0))
		if s.placed < len(n.p.Work.Tasks) || best != nil && s.makespan >= best.makespan {
			return best
		}
		if best = s; s.makespan <= wanted {
			return best
		}
		start = n.late(n.back.by(n.p.tasks.mirrored(s.start, 0)), c)
	}
}

// place puts tasks with given starts on the lines of a candidate's hosts: each on the first free line, as in a list
// schedule. It returns nil if a task has no place.
func (n *narrowing) place(start timing, c candidate) *schedule {
	s := newScheduler(n.p.tasks, n.p.Cluster, n.p.lines(c, 0))
	for _, i := range n.p.tasks.inTurn(start) {
		now := start[i] - n.p.Cluster.Turn()
		for s.ends.Len() > 0 && s.ends.First().at <= now {
			e := s.ends.Pop()
			s.finish(e.task, e.at)
		}
		if !s.begin(i, now) {
			return nil
		}
	}
	return &s.out
}

// disturbed returns the tasks with randomly perturbed ranks, by up to 5 % in some tries and up to 80 % in others.
func (t *tasks) disturbed(rng *rand.Rand, k int) *tasks {
	key := t.work.Graph.UpwardRanks(t.quick.Runtimes())
	most := 0.05 * math.Pow(2, float64(k/2%5))
	for i, rank := range key {
		key[i] = -time.Duration(float64(rank) * (1 + most*(2*rng.Float64()-1)))
	}
	return t.by(key)
}
