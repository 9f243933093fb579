package queuemodel

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/slot"
)

// unlimited is the assumed time of a job without a known limit.
const unlimited = 365 * 24 * time.Hour

// A Model is the plan of a queue at the instant of a look. Use Of to make one. Instants count from the look.
type Model struct {
	Notes []string // gaps, for people

	seen    corral.Backlog
	counted *queue.Queue // if processors are counted; nil: the queue is planned on nodes

	queue string
	at    time.Time
	nodes []*node
	jobs  []job // the waiting ones, in the order in which they are planned
	ends  map[string]time.Duration
	turns map[string][]time.Duration // :: array → when its next elements may start

	early []*node       // the nodes without the jobs that wait for a time, another job or their array; nil: none do
	first time.Duration // when the first of these may start
}

// A job is a waiting job.
type job struct {
	corral.QueuedJob
	start time.Duration // negative: it never starts
}

// mostPlaced is the maximum product of nodes and waiting jobs of a queue that is planned on nodes, which takes about a
// second.
const mostPlaced = 200_000

// Of returns the model of the queue that a backlog describes.
func Of(seen corral.Backlog) *Model {
	switch {
	case len(seen.Nodes) == 0:
		return count(seen, "only cpus are counted, not nodes and memory: "+
			"starts may be later if free cpus are scattered")
	case len(seen.Nodes)*len(seen.Waiting) > mostPlaced:
		return count(seen, fmt.Sprintf("%d jobs wait for %d nodes, too many to be planned on nodes: only cpus are "+
			"counted, so starts may be later", len(seen.Waiting), len(seen.Nodes)))
	}
	m := of(seen)
	m.planAll()
	return m
}

// of returns the model of a backlog without its waiting jobs.
func of(seen corral.Backlog) *Model {
	m := &Model{seen: seen, queue: seen.Queue, at: seen.At, ends: map[string]time.Duration{},
		turns: map[string][]time.Duration{}}
	byName := map[string]*node{}
	for _, n := range seen.Nodes {
		v := newNode(n)
		byName[v.name] = v
		m.nodes = append(m.nodes, v)
	}
	for _, j := range seen.Running {
		m.run(j, byName)
	}
	for _, n := range m.nodes { // until an unknown time
		if n.unshown > 0 {
			n.take(0, unlimited, piece{cpus: n.unshown})
		}
	}
	for _, r := range seen.Reservations {
		for _, name := range r.Nodes {
			if n := byName[name]; n != nil {
				n.close(m.since(r.From), m.since(r.To))
			}
		}
	}
	return m
}

// planAll plans the waiting jobs: first those that wait for room alone, as the site's backfill does, then those that
// wait for a time, another job or their array.
func (m *Model) planAll() {
	m.jobs = make([]job, len(m.seen.Waiting))
	waits := map[string]bool{} // :: ID of a job that is not planned yet
	var later []int
	for i, j := range m.seen.Waiting {
		if len(j.After) > 0 || j.Array != "" || j.NotBefore.After(m.at) {
			later = append(later, i)
			waits[j.ID] = true
			continue
		}
		m.jobs[i] = job{j, m.plan(j)}
	}
	if len(later) > 0 {
		m.first = slot.Forever
		for _, n := range m.nodes {
			m.early = append(m.early, n.clone())
		}
	}
	for planned := true; len(later) > 0; {
		rest := later[:0:0]
		for _, i := range later {
			j := m.seen.Waiting[i]
			if planned && slices.ContainsFunc(j.After, func(id string) bool { return waits[id] }) {
				rest = append(rest, i)
				continue
			}
			m.jobs[i] = job{j, m.plan(j)}
			delete(waits, j.ID)
		}
		planned, later = len(rest) < len(later), rest // jobs that wait for each other are planned all the same
	}
}

// since returns the time from the look until an instant, which may have passed.
func (m *Model) since(t time.Time) time.Duration { return max(0, t.Sub(m.at)) }

// limit returns the assumed time of a job; a job that is beyond its limit is about to end.
func limit(j corral.QueuedJob) time.Duration {
	if j.Limit == 0 {
		return unlimited
	}
	return time.Duration(max(j.Limit, j.Elapsed+corral.Seconds(time.Second)))
}

// run adds a running job.
func (m *Model) run(j corral.QueuedJob, byName map[string]*node) {
	end := limit(j) - time.Duration(j.Elapsed)
	m.ends[j.ID] = max(m.ends[j.ID], end)
	if j.Array != "" {
		m.ends[j.Array] = max(m.ends[j.Array], end)
		m.turns[j.Array] = append(m.turns[j.Array], end)
	}
	p := pieceOf(j, max(1, len(j.On)))
	for _, name := range j.On {
		if n := byName[name]; n != nil {
			cpus, _ := p.of(n)
			n.unshown -= cpus
			n.take(0, end, p)
		}
	}
}

// pieceOf returns the part of each of its nodes that a job holds.
func pieceOf(j corral.QueuedJob, nodes int) piece {
	return piece{cpus: max(1, (j.Processors+nodes-1)/nodes), memory: j.MemoryMiB, whole: j.Whole}
}

// plan plans a waiting job at the earliest time, and returns it; it is negative if the job never starts.
func (m *Model) plan(j corral.QueuedJob) time.Duration {
	from := time.Duration(0)
	if !j.NotBefore.IsZero() {
		from = m.since(j.NotBefore)
	}
	for _, id := range j.After {
		end, known := m.ends[id]
		if known && end < 0 {
			return -1 // that job never starts
		}
		from = max(from, end)
	}
	turn := m.turns[j.Array]
	if j.Array != "" && len(turn) > 0 {
		slices.Sort(turn)
		from = max(from, turn[0])
	}
	m.first = min(m.first, from)
	hosts, length := max(1, j.Nodes), limit(j)
	p := pieceOf(j, hosts)
	start, on := place(m.nodes, need{cmp.Or(j.Queue, m.queue), hosts, length, p}, from)
	if on == nil {
		m.ends[j.ID] = -1
		return -1
	}
	for _, n := range on {
		n.take(start, start+length, p)
	}
	m.ends[j.ID] = max(m.ends[j.ID], start+length)
	if j.Array != "" && len(turn) > 0 {
		turn[0] = start + length
	}
	return start
}

// A need is a piece of each of a number of nodes of a queue, for a time.
type need struct {
	queue  string // empty: any
	hosts  int
	length time.Duration
	of     piece
}

// place returns the earliest instant, not before from, at which a number of nodes of a queue have room for a piece
// each, and the nodes: those with the least free cpus, as packing does, then in their order. on is nil if there is
// none.
func place(nodes []*node, j need, from time.Duration) (start time.Duration, on []*node) {
	var able []*node
	for _, n := range nodes {
		if n.fits(j.of) && (j.queue == "" || len(n.queues) == 0 || slices.Contains(n.queues, j.queue)) {
			able = append(able, n)
		}
	}
	at := make([]time.Duration, 0, len(able))
	for {
		at = at[:0]
		var ready []*node
		for _, n := range able {
			if t, ok := n.fit(from, j.length, j.of); ok {
				at = append(at, t)
				if t == from {
					ready = append(ready, n)
				}
			}
		}
		if len(ready) >= j.hosts {
			slices.SortStableFunc(ready, func(a, b *node) int {
				return cmp.Compare(a.freeCPUs.Free(from), b.freeCPUs.Free(from))
			})
			return from, ready[:j.hosts]
		}
		if len(at) < j.hosts {
			return 0, nil
		}
		slices.Sort(at) // before the last of them, fewer nodes have room
		from = at[j.hosts-1]
	}
}

// A Request describes the hosts of a pilot.
type Request struct {
	Hosts     int
	CPUs      int // of each host
	MemoryMiB int // of each host; 0: any
	Walltime  time.Duration
}

// need returns the need of a pilot in the queue.
func (m *Model) need(p Request) need {
	return need{m.queue, max(1, p.Hosts), p.Walltime, piece{cpus: max(1, p.CPUs), memory: p.MemoryMiB}}
}

// Start returns when a pilot would start that is submitted now, or that is not to start before an instant. Jobs that
// may not start yet do not delay a pilot that starts before they may: the site plans them only then. ok is false if the
// pilot never starts.
func (m *Model) Start(from time.Duration, p Request) (at time.Duration, ok bool) {
	if m.counted != nil {
		return m.Room().Fit(from, p.Walltime, max(1, p.Hosts)*max(1, p.CPUs))
	}
	want := m.need(p)
	if m.early != nil {
		at, on := place(m.early, want, from)
		if on != nil && at <= m.first {
			return at, true
		}
	}
	at, on := place(m.nodes, want, from)
	return at, on != nil
}

// Room returns the number of cpus of the queue that nothing holds, or is planned to hold, over time. They may be on
// several nodes.
func (m *Model) Room() *slot.Profile {
	if m.counted != nil {
		return queue.Unplanned(m.counted).From(m.counted.Now())
	}
	total := 0
	var changes []slot.Change
	for _, n := range m.nodes {
		if len(n.queues) > 0 && !slices.Contains(n.queues, m.queue) {
			continue
		}
		total += n.cpus
		end := slot.Forever
		for at, free := range backwards(n.freeCPUs) {
			changes = append(changes, slot.Change{From: at, To: end, Free: free - n.cpus})
			end = at
		}
	}
	return slot.NewProfile(max(1, total), 0).With(changes)
}
