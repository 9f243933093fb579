package ensembles

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/ensemble/record"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A Decision describes the actions for an ensemble.
type Decision struct {
	Members []record.Member    // their new standings, except for workflows that begin
	Begin   []int              // workflows whose runs to create, in this order
	Start   []time.Duration    // walltimes of the pilots to request
	Stop    []corral.GlideinID // pilots to end at once
	Cancel  []corral.RunID     // runs to cancel
	Stepped bool               // the policy decided about pilots
	Next    time.Duration      // time of its next decision
	Ending  string             // why no more workflows are begun; "": the ensemble continues
	Ended   bool               // no run or pilot of the ensemble is left
	Spent   cost.Money
}

// Decide returns the decision for the state described by a sight. It is called repeatedly, and each sight includes the
// effects of earlier decisions.
func (d Direction) Decide(s Sight) Decision {
	x := Decision{Members: slices.Clone(s.Row.Members), Next: s.Due, Spent: s.spent(d.Problem.Terms)}
	d.settle(&x, s)
	if s.Row.State == record.Ending {
		d.wind(&x, s)
		return x
	}
	v := s.view(d)
	switch {
	case s.since(s.Now) >= d.Problem.Deadline:
		x.Ending = "its deadline has passed"
		return x
	case s.Closed != "":
		x.Ending = s.Closed
		return x
	case s.Refusal != "": // no run is begun and no pilot requested, but running work continues
		return x
	}
	d.admit(&x, s, v)
	if v.Over = x.idle(); v.Over {
		x.Ending = x.end()
		return x
	}
	if s.Row.Steps == 0 {
		v.Now = 0 // the first step is made as at the beginning, whenever it happens
	} else if v.Now+early < s.Due {
		return x
	}
	d.step(&x, s, v)
	return x
}

// settle records the runs that have ended. When a run has ended, the policy is consulted again about deferred
// workflows.
func (d Direction) settle(x *Decision, s Sight) {
	ended := false
	for k := range x.Members {
		m := &x.Members[k]
		r, known := s.Runs[m.Run]
		if m.Standing != record.Begun || !known || !r.State.Over() {
			continue
		}
		ended = true
		switch late := s.since(r.EndedAt) > d.Problem.Deadline; {
		case r.State == corral.RunSucceeded && !late:
			m.Standing, m.Reason = record.Completed, ""
		case late || s.Row.State == record.Ending && r.State == corral.RunCancelled:
			m.Standing, m.Reason = record.Missed, "it was not done when the ensemble ended: "+s.why()
		default:
			m.Standing, m.Reason = record.Missed, fmt.Sprintf("its run is %s: %s", r.State, r.Reason)
		}
	}
	for k := range x.Members {
		if m := &x.Members[k]; ended && m.Standing == record.Deferred {
			m.Standing = record.Waiting
		}
	}
}

// why returns the reason why the ensemble is ending or has ended.
func (s Sight) why() string {
	if s.Row.State == record.Running {
		return "its deadline has passed"
	}
	return s.Row.Reason
}

// wind ends an ensemble that is ENDING: it cancels runs, ends pilots, and keeps workflows that have not begun from ever
// beginning.
func (d Direction) wind(x *Decision, s Sight) {
	x.Ended = true
	for k := range x.Members {
		m := &x.Members[k]
		switch m.Standing {
		case record.Waiting:
			m.Standing, m.Reason = record.Rejected, "it had not begun when the ensemble ended: "+s.Row.Reason
		case record.Deferred:
			m.Standing = record.Rejected
		case record.Begun:
			r, known := s.Runs[m.Run]
			if !known { // it was removed before its end was seen
				m.Standing, m.Reason = record.Missed, fmt.Sprintf("its run %d is gone", m.Run)
				continue
			}
			x.Ended = false
			if r.State == corral.RunRunning {
				x.Cancel = append(x.Cancel, m.Run)
			}
		}
	}
	for _, g := range s.Glideins {
		if g.State.Terminal() {
			continue
		}
		x.Ended = false
		if g.Asked != corral.AskCancel {
			x.Stop = append(x.Stop, g.ID)
		}
	}
}

// admit consults the policy about workflows, in the order of their priorities.
func (d Direction) admit(x *Decision, s Sight, v ensemble.View) {
	free, begun := s.free(v), s.Begun
	for k := range x.Members {
		m := &x.Members[k]
		if m.Standing != record.Waiting {
			continue
		}
		if d.Patient && free <= 0 {
			return
		}
		work := d.Problem.Ensemble[k]
		verdict := d.Policy.Admit(v, ensemble.Claim{Workflow: k, Runtime: d.held(ensemble.Runtime(work)),
			Path: work.Graph.CriticalPath(work.Runtimes()), Begun: d.held(begun)})
		m.Reason = verdict.Reason
		switch {
		case verdict.Begin:
			x.Begin = append(x.Begin, k)
			free -= roots(work.Graph)
			begun += ensemble.Runtime(work)
		case verdict.Never:
			m.Standing = record.Rejected
		default:
			m.Standing = record.Deferred
		}
	}
}

// held returns how long a pilot is held if the given task time is spread evenly over its cpus.
func (d Direction) held(runtime time.Duration) time.Duration {
	return runtime / time.Duration(max(1, d.Problem.Machines.Slots))
}

// roots returns the number of tasks without parents.
func roots(g *dag.Graph) (n int) {
	for i := range g.Len() {
		if len(g.Parents(i)) == 0 {
			n++
		}
	}
	return n
}

// end returns the reason for the end of an ensemble when none of its workflows may still run.
func (x *Decision) end() string {
	if (record.Progress{Members: x.Members}).Completed() == len(x.Members) {
		return "all its workflows are completed"
	}
	return "none of its other workflows can be completed"
}

// idle reports whether no task is left that may still run.
func (x *Decision) idle() bool {
	return len(x.Begin) == 0 && !slices.ContainsFunc(x.Members, func(m record.Member) bool {
		return m.Standing == record.Waiting || m.Standing == record.Begun
	})
}

// step consults the policy about pilots. Tasks that a pilot is about to take count as taken. If there is no pilot, and
// no money for another, the ensemble cannot make any more progress.
func (d Direction) step(x *Decision, s Sight, v ensemble.View) {
	ready := s.ready()
	for _, k := range x.Begin {
		ready += roots(d.Problem.Ensemble[k].Graph)
	}
	orders := d.Policy.Step(taken(v, ready))
	x.Stepped, x.Next = true, max(orders.Next, s.since(s.Now)+shortest)
	for _, number := range orders.Stop {
		x.Stop = append(x.Stop, s.Glideins[number].ID)
	}
	x.Start = d.lasting(s, v, min(orders.Start, d.Problem.Machines.Most-len(v.Machines)))
	least := d.Problem.Terms.Cost(max(leastHeld, d.Problem.Interval) + d.Problem.Leaving)
	if left := d.Problem.Budget - v.Ended; len(x.Start) == 0 && len(v.Machines) == 0 && left < least {
		x.Stepped = false
		x.Ending = d.poor(x.Spent)
	}
}

// poor explains why too little money is left.
func (d Direction) poor(spent cost.Money) string {
	t, budget := d.Problem.Terms, d.Problem.Terms.Amount(d.Problem.Budget)
	if spent >= d.Problem.Budget {
		return fmt.Sprintf("its budget is spent: %s", budget)
	}
	return fmt.Sprintf("%s of its %s are spent, and the rest does not pay for another pilot", t.Amount(spent), budget)
}

// taken returns the view after free pilots have taken the ready tasks.
func taken(v ensemble.View, ready int) ensemble.View {
	v.Machines = slices.Clone(v.Machines)
	for i := range v.Machines {
		if m := &v.Machines[i]; m.Ready {
			n := max(0, min(ready, m.Slots-m.Busy))
			m.Busy, ready = m.Busy+n, ready-n
		}
	}
	return v
}

// lasting returns the walltimes with which n pilots are requested: each pilot must have ended by the deadline, and must
// last no longer than the budget can pay for while all existing pilots are held. So the batch system enforces the limit
// even while corrald is not running. The last pilot may be affordable only for a shorter time, or for a time that is
// too short to request it at all. The pilots of a static plan, which are held for different times, are released by the
// keeper.
func (d Direction) lasting(s Sight, v ensemble.View, n int) (walltimes []time.Duration) {
	t := d.Problem.Terms
	left := t.Affords(d.Problem.Budget - v.Ended.Plus(s.owed(d.Problem)))
	for range n {
		hold := max(leastHeld, d.Problem.Deadline-s.since(s.Now)-d.Problem.Leaving)
		if !d.Static {
			hold = min(hold, lengths(left, t.Period)-d.Problem.Leaving)
			left -= t.Periods(hold + d.Problem.Leaving)
		}
		if hold < leastHeld {
			break
		}
		walltimes = append(walltimes, min(time.Duration(s.Row.Pilots.Walltime),
			(hold+jobfiles.Reserve(hold)).Truncate(time.Second)))
	}
	return walltimes
}

// lengths returns the total length of n periods.
func lengths(n int64, period time.Duration) time.Duration {
	if n > math.MaxInt64/int64(period) {
		return math.MaxInt64
	}
	return time.Duration(n) * period
}

// leastHeld is the shortest time for which a pilot is requested.
const leastHeld = 10 * time.Second

// early is how long before its due time a decision about pilots may be made, because the next check would be later than
// the due time.
const early = lookEvery + 200*time.Millisecond

// shortest is the minimum time between two decisions about pilots.
const shortest = time.Second
