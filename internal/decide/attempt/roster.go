package attempt

import (
	"cmp"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// A Roster is the workers of a pilot and the hosts that it has lost.
type Roster struct {
	Workers []*Worker
	Lost    []corral.LostHost // hosts that have no worker any more, or never had one
	hosts   int               // that the pilot was asked for
	here    string            // the batch system's name of the supervisor's node, if it has one
	limit   corral.Seconds    // of idleness; 0: none
}

// A Worker is one of the hosts that the pilot was asked for, and what became of the processes that served it.
type Worker struct {
	ID     string
	Node   string // another than the supervisor's; empty: that one
	number int    // of its host

	running   bool      // it has a process
	notBefore time.Time // of the next start
	deaths    int       // of its processes in a row, none of which registered

	registeredAt time.Time // last; zero: its process has not registered yet
	idleSince    time.Time // zero: it works
	idleToldAt   time.Time

	done    bool   // it needs no process any more
	left    Left   // why, in the worker's own word; empty: it was given up
	trouble string // what was wrong; empty: nothing
}

// NewRoster says which node has which worker. Nodes are the batch job's, the supervisor's first; without others all
// workers are on the supervisor's, here. A host for which there is no node is lost from the beginning.
func NewRoster(tag string, p jobfiles.Pilot, nodes []string, here string) *Roster {
	r := &Roster{hosts: p.Hosts, here: here, limit: p.Idle}
	for i := range p.Hosts {
		w := &Worker{number: i, ID: fmt.Sprintf("%s/%d", tag, i)}
		if i > 0 && len(nodes) > 1 {
			if i >= len(nodes) {
				why := fmt.Sprintf("the batch system gave %d nodes for %d hosts", len(nodes), p.Hosts)
				r.Lost = append(r.Lost, corral.LostHost{Host: i, Why: why})
				continue
			}
			w.Node = nodes[i]
		}
		r.Workers = append(r.Workers, w)
	}
	return r
}

func (r *Roster) count(is func(*Worker) bool) (n int) {
	for _, w := range r.Workers {
		if is(w) {
			n++
		}
	}
	return n
}

// Here counts the workers of the supervisor's node.
func (r *Roster) Here() int { return r.count(func(w *Worker) bool { return w.Node == "" }) }

// Place returns which of the workers of its node a worker is, from 0, and how many those are. They share what the node
// has.
func (r *Roster) Place(of *Worker) (i, n int) {
	for _, w := range r.Workers {
		if w.Node != of.Node {
			continue
		}
		if w == of {
			i = n
		}
		n++
	}
	return i, n
}

// Serving counts the workers that did not fail.
func (r *Roster) Serving() int { return r.count(func(w *Worker) bool { return w.trouble == "" }) }

func (r *Roster) allLeft() bool { return r.count(func(w *Worker) bool { return !w.done }) == 0 }

// Due returns the workers to start now. Each of them is due again after a gap, should the start fail. On another node
// the gap doubles with each death: a hiccup of the network must not cost the pilot a node.
func (r *Roster) Due(now time.Time) (due []*Worker) {
	for _, w := range r.Workers {
		if w.running || w.done || now.Before(w.notBefore) {
			continue
		}
		w.notBefore = now.Add(restartGap)
		if w.Node != "" {
			w.notBefore = now.Add(restartGap << w.deaths)
		}
		due = append(due, w)
	}
	return due
}

// Start records that the worker has a process, which has not registered.
func (w *Worker) Start() { w.running, w.registeredAt, w.idleSince = true, time.Time{}, time.Time{} }

// Register records that the worker's cluster knows it, maybe once more. Deaths before that are forgiven.
func (w *Worker) Register(now time.Time) { w.registeredAt, w.deaths = now, 0 }

// Idle records for how long the worker has had nothing to do; 0: it works.
func (w *Worker) Idle(since time.Duration, now time.Time) {
	w.idleToldAt, w.idleSince = now, time.Time{}
	if since > 0 {
		w.idleSince = now.Add(-since)
	}
}

// Leave records that the worker has left, with its last word. If that is trouble its host is lost, which Leave then
// returns.
func (r *Roster) Leave(w *Worker, left Left, trouble string) *corral.LostHost {
	w.running, w.done, w.left, w.trouble = false, true, left, trouble
	if trouble == "" {
		return nil
	}
	return r.lose(w)
}

// Die records that the worker's process died, or could not be started. A worker that dies too often in a row is given
// up; its host is lost, which Die then returns.
func (r *Roster) Die(w *Worker, how string) *corral.LostHost {
	w.running = false
	if w.deaths++; w.deaths <= maxDeaths {
		return nil
	}
	w.done = true
	w.trouble = fmt.Sprintf("%s, %d times in a row without having registered", how, w.deaths)
	return r.lose(w)
}

func (r *Roster) lose(w *Worker) *corral.LostHost {
	l := corral.LostHost{Host: w.number, Node: r.blamed(w), Why: w.trouble}
	r.Lost = append(r.Lost, l)
	return &l
}

// blamed returns the node on which a worker failed. It is empty if the node is not to blame: the cluster would refuse
// the worker from any other, or another worker serves on the same node.
func (r *Roster) blamed(w *Worker) string {
	if w.left == LeftRefused {
		return ""
	}
	if r.count(func(other *Worker) bool { return other.Node == w.Node && other.trouble == "" }) > 0 {
		return ""
	}
	return cmp.Or(w.Node, r.here)
}

// Remaining says for people how many hosts are left.
func (r *Roster) Remaining() string {
	return fmt.Sprintf("%d of %d hosts are left", r.Serving(), r.hosts)
}

// shortfall says, behind a reason, that not all hosts served; empty: all did, or none.
func (r *Roster) shortfall() string {
	if len(r.Lost) == 0 || r.Serving() == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d hosts served; %s)", r.Serving(), r.hosts, r.Lost[0])
}

// idle reports whether every worker that is still to serve has had nothing to do for as long as the order allows.
func (r *Roster) idle(now time.Time) bool {
	limit := time.Duration(r.limit)
	return limit > 0 && !r.allLeft() && r.count(func(w *Worker) bool { return !w.done && !w.idleFor(limit, now) }) == 0
}

// idleFor reports whether the worker has had nothing to do for limit. That counts from when it last registered: a
// dispatcher that comes back has tasks for it at once. While the dispatcher is away the worker cannot know whether
// there is work, and that must last for routeWait more.
func (w *Worker) idleFor(limit time.Duration, now time.Time) bool {
	if w.registeredAt.IsZero() || w.idleSince.IsZero() {
		return false
	}
	if now.Sub(w.idleToldAt) > awayAfter {
		limit += routeWait
	}
	return now.Sub(w.idleSince) >= limit && now.Sub(w.registeredAt) >= limit
}
