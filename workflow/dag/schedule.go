package dag

import (
	"container/heap"
	"slices"
	"time"
)

// ListSchedule returns the makespan of a list schedule of g on cpus uniform cpus without any overhead. Node i holds
// need[i] cpus for cost[i]; a nil need means one cpu each. ok is false if a node needs less than one cpu or more cpus
// than there are.
//
// Time advances from the end of one node to the next. Whenever cpus are free, the ready node with the highest upward
// rank among those that fit is started, until no ready node fits; if nodes have equal ranks, the node with the lowest
// number is started first. Nodes are never interrupted, and no cpu is kept free for a wide node while a narrow one
// could use it. The priority is that of HEFT. Unlike HEFT, the schedule considers only ready nodes, like a dispatcher,
// and does not insert nodes into earlier gaps, because it never leaves a cpu idle that a ready node could use. The
// makespan corresponds to the reference runtime of Juve 2012, §2.8.
//
// The result is not a bound. A greedy list schedule may be longer than the best schedule; if all nodes need one cpu, it
// is less than twice as long (Graham 1969). LowerBound returns a proven bound.
func ListSchedule(g *Graph, cost []time.Duration, need []int, cpus int) (makespan time.Duration, ok bool) {
	for i := range g.Len() {
		if n := needOf(need, i); n < 1 || n > cpus {
			return 0, false
		}
	}
	return newScheduler(g, cost, need).run(cpus), true
}

// A scheduler simulates one list schedule.
type scheduler struct {
	g       *Graph
	cost    []time.Duration
	need    []int
	rank    []time.Duration
	missing []int         // number of unfinished parents of each node
	classes []*readyQueue // queues of ready nodes by ascending need: few different needs exist, and thus few queues
	running endQueue
}

func newScheduler(g *Graph, cost []time.Duration, need []int) *scheduler {
	s := &scheduler{g: g, cost: cost, need: need, rank: g.UpwardRanks(cost), missing: make([]int, g.Len())}
	needs := make(map[int]bool)
	for i := range g.Len() {
		s.missing[i] = len(g.Parents(i))
		needs[needOf(need, i)] = true
	}
	for n := range needs {
		s.classes = append(s.classes, &readyQueue{need: n, rank: s.rank})
	}
	slices.SortFunc(s.classes, func(a, b *readyQueue) int { return a.need - b.need })
	return s
}

// run simulates the schedule on the given number of free cpus and returns the end of its last node. Whenever cpus
// become free it starts the node with the highest rank among those that fit, as in HEFT's list scheduling. Nodes that
// end at the same instant are handled together, so that their order does not matter.
func (s *scheduler) run(free int) time.Duration {
	var now time.Duration
	for i, m := range s.missing {
		if m == 0 {
			s.ready(i)
		}
	}
	for {
		for q := s.best(free); q != nil; q = s.best(free) {
			i := heap.Pop(q).(int)
			free -= q.need
			heap.Push(&s.running, ending{add(now, s.cost[i]), i})
		}
		if len(s.running) == 0 {
			return now
		}
		now = s.running[0].at
		for len(s.running) > 0 && s.running[0].at == now {
			free += s.finish()
		}
	}
}

// finish ends the running node with the earliest end, and returns the number of its cpus.
func (s *scheduler) finish() int {
	i := heap.Pop(&s.running).(ending).node
	for _, c := range s.g.Children(i) {
		if s.missing[c]--; s.missing[c] == 0 {
			s.ready(c)
		}
	}
	return needOf(s.need, i)
}

func (s *scheduler) ready(i int) {
	k, _ := slices.BinarySearchFunc(s.classes, needOf(s.need, i), func(q *readyQueue, n int) int { return q.need - n })
	heap.Push(s.classes[k], i)
}

// best returns the queue with the highest-ranking first node among those that fit into the free cpus, or nil.
func (s *scheduler) best(free int) *readyQueue {
	var best *readyQueue
	for _, q := range s.classes {
		if q.need > free {
			break
		}
		if len(q.nodes) > 0 && (best == nil || before(s.rank, q.nodes[0], best.nodes[0])) {
			best = q
		}
	}
	return best
}

func before(rank []time.Duration, i, j int) bool {
	if rank[i] != rank[j] {
		return rank[i] > rank[j]
	}
	return i < j
}

// A readyQueue is a heap of ready nodes with equal needs, highest rank first.
type readyQueue struct {
	need  int
	rank  []time.Duration
	nodes []int
}

func (q *readyQueue) Len() int           { return len(q.nodes) }
func (q *readyQueue) Less(i, j int) bool { return before(q.rank, q.nodes[i], q.nodes[j]) }
func (q *readyQueue) Swap(i, j int)      { q.nodes[i], q.nodes[j] = q.nodes[j], q.nodes[i] }
func (q *readyQueue) Push(x any)         { q.nodes = append(q.nodes, x.(int)) }
func (q *readyQueue) Pop() any {
	last := q.nodes[len(q.nodes)-1]
	q.nodes = q.nodes[:len(q.nodes)-1]
	return last
}

type ending struct {
	at   time.Duration
	node int
}

// An endQueue is a heap of running nodes, earliest end first.
type endQueue []ending

func (q endQueue) Len() int           { return len(q) }
func (q endQueue) Less(i, j int) bool { return q[i].at < q[j].at }
func (q endQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *endQueue) Push(x any)        { *q = append(*q, x.(ending)) }
func (q *endQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
