package queuemodel

import (
	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// count returns a model that counts processors, with the reason.
func count(seen corral.Backlog, why string) *Model {
	idle := seen
	idle.Waiting = nil
	q := queue.Of(idle)
	m := &Model{seen: seen, queue: seen.Queue, at: seen.At, counted: q, Notes: []string{why}}
	cpus := map[string]int{}
	for _, n := range seen.Nodes {
		cpus[n.Name] = n.CPUs
	}
	for _, r := range seen.Reservations {
		n, from, to := 0, q.Now()+m.since(r.From), q.Now()+m.since(r.To)
		for _, name := range r.Nodes {
			n += cpus[name]
		}
		if to > from {
			q.Reserve(from, to, min(n, q.Free().Least(from, to)))
		}
	}
	q.Enqueue(seen.Waiting)
	return m
}

// Line returns a queue in which pilots can be simulated. On nodes, only the room that the plan leaves is simulated, in
// which jobs hold their processors at their planned times; a longer queue that is counted is simulated like that, too.
func (m *Model) Line() *queue.Queue {
	if m.counted == nil {
		return queue.Within(m.Room())
	}
	if m.counted.Waiting() > mostSimulated {
		return m.counted.Condensed()
	}
	return m.counted
}

// mostSimulated is the maximum number of waiting jobs that are simulated one by one in each outcome of a plan. The jobs
// of a longer queue start as planned, even if a pilot that ends early leaves room before them.
const mostSimulated = 200
