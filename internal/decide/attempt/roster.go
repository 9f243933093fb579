package attempt

import (
	"cmp"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// A Roster holds the workers of a pilot and the hosts that it has lost.
type Roster struct {
	Workers []*Worker
	Lost    []corral.LostHost // hosts whose worker failed, or that never had a worker
	hosts   int               // number of hosts requested for the pilot
	here    string            // the batch system's name for the supervisor's node, if known
	limit   corral.Seconds    // limit on idle time; 0: none
}

// A Worker represents one of the hosts requested for the pilot, and the state of the processes that have served that
// host.
type Worker struct {
	ID     string
	Node   string // node of the worker; empty: the supervisor's node
	number int    // number of its host

	running   bool      // a process of the worker exists
	notBefore time.Time // earliest time of the next start
	deaths    int       // consecutive deaths of its processes without a registration

	registeredAt time.Time // time of the latest registration; zero: the process has not registered yet
	idleSince    time.Time // zero: the worker is working
	idleToldAt   time.Time

	done    bool   // the worker needs no further process
	left    Left   // the worker's own reason for leaving; empty: it was abandoned
	trouble string // description of a problem; empty: none
}

// NewRoster assigns the workers to nodes. nodes lists the batch job's nodes, starting with the supervisor's; if it
// lists no others, all workers are on the supervisor's node, here. A host without a node is lost from the beginning.
func NewRoster(tag string, p jobfiles.PilotOrder, nodes []string, here string) *Roster {
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

// Here counts the workers on the supervisor's node.
func (r *Roster) Here() int { return r.count(func(w *Worker) bool { return w.Node == "" }) }

// Place returns the index of a worker among the workers of its node, from 0, and their number. They share the node's
// resources.
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

// Serving counts the workers that have not failed.
func (r *Roster) Serving() int { return r.count(func(w *Worker) bool { return w.trouble == "" }) }

func (r *Roster) allLeft() bool { return r.count(func(w *Worker) bool { return !w.done }) == 0 }

// Due returns the workers to start now. Each of these workers becomes due again after a delay in case the start fails.
// On a node other than the supervisor's the delay doubles with each death, so that a network hiccup does not cost the
// pilot a node.
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

// Start records that the worker has a process that has not registered yet.
func (w *Worker) Start() { w.running, w.registeredAt, w.idleSince = true, time.Time{}, time.Time{} }

// Register records that the worker has registered with its cluster, possibly again. It resets the count of deaths.
func (w *Worker) Register(now time.Time) { w.registeredAt, w.deaths = now, 0 }

// Idle records how long the worker has been idle; 0 means that it is working.
func (w *Worker) Idle(since time.Duration, now time.Time) {
	w.idleToldAt, w.idleSince = now, time.Time{}
	if since > 0 {
		w.idleSince = now.Add(-since)
	}
}

// Leave records that the worker has left, with its final report. If the report mentions trouble, the worker's host is
// lost, and Leave returns that host.
func (r *Roster) Leave(w *Worker, left Left, trouble string) *corral.LostHost {
	w.running, w.done, w.left, w.trouble = false, true, left, trouble
	if trouble == "" {
		return nil
	}
	return r.lose(w)
}

// Die records that the worker's process died or could not be started. A worker that dies too often in a row is
// abandoned: its host is lost, and Die returns that host.
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

// blamed returns the node on which a worker failed. The result is empty if the node is not to blame, because the
// cluster would refuse the worker from any other node, or because another worker is serving on the same node.
func (r *Roster) blamed(w *Worker) string {
	if w.left == LeftRefused {
		return ""
	}
	if r.count(func(other *Worker) bool { return other.Node == w.Node && other.trouble == "" }) > 0 {
		return ""
	}
	return cmp.Or(w.Node, r.here)
}

// Remaining returns a message that contains the number of hosts that are left.
func (r *Roster) Remaining() string {
	return fmt.Sprintf("%d of %d hosts are left", r.Serving(), r.hosts)
}

// shortfall returns a suffix for a reason, which states that some hosts did not serve, or "" if all hosts served, or
// none.
func (r *Roster) shortfall() string {
	if len(r.Lost) == 0 || r.Serving() == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d hosts served; %s)", r.Serving(), r.hosts, r.Lost[0])
}

// idle reports whether every worker that has not left has been idle for as long as the order allows.
func (r *Roster) idle(now time.Time) bool {
	limit := time.Duration(r.limit)
	return limit > 0 && !r.allLeft() && r.count(func(w *Worker) bool { return !w.done && !w.idleFor(limit, now) }) == 0
}

// idleFor reports whether the worker has been idle for limit. The time counts from the worker's latest registration,
// because a dispatcher that becomes reachable again has tasks for the worker at once. While the dispatcher is
// unreachable, the worker cannot determine whether there is work, so the limit is extended by routeWait.
func (w *Worker) idleFor(limit time.Duration, now time.Time) bool {
	if w.registeredAt.IsZero() || w.idleSince.IsZero() {
		return false
	}
	if now.Sub(w.idleToldAt) > awayAfter {
		limit += routeWait
	}
	return now.Sub(w.idleSince) >= limit && now.Sub(w.registeredAt) >= limit
}
