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

// A Decision is what is to be done about an ensemble.
type Decision struct {
	Members []record.Member    // as they stand from now on, but for those that are begun
	Begin   []int              // workflows to make runs of, in this order
	Start   []time.Duration    // the walltimes of pilots to ask for
	Stop    []corral.GlideinID // pilots that are to go at once
	Cancel  []corral.RunID     // runs that are to end
	Stepped bool               // the policy decided about pilots
	Next    time.Duration      // when it is to decide again
	Ending  string             // why nothing more is begun from now on; "": it goes on
	Ended   bool               // nothing is left of it
	Spent   cost.Money
}

// Decide says what follows from a sight. It is asked again and again: what it wanted and what was done is in the next
// sight.
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
		x.Ending = "its deadline is over"
		return x
	case s.Closed != "":
		x.Ending = s.Closed
		return x
	case s.Refusal != "": // nothing is begun or asked for, and what was begun goes on
		return x
	}
	d.admit(&x, s, v)
	if v.Over = x.idle(); v.Over {
		x.Ending = x.end()
		return x
	}
	if s.Row.Steps == 0 {
		v.Now = 0 // the first step is made as at the beginning, whenever it comes
	} else if v.Now+early < s.Due {
		return x
	}
	d.step(&x, s, v)
	return x
}

// settle takes note of runs that are over. When one is, workflows that were deferred are asked about again.
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

// why says why the ensemble ends, or ended.
func (s Sight) why() string {
	if s.Row.State == record.Running {
		return "its deadline is over"
	}
	return s.Row.Reason
}

// wind lets an ensemble end that is ENDING: runs are cancelled, pilots go, and workflows that were not begun are not.
func (d Direction) wind(x *Decision, s Sight) {
	x.Ended = true
	for k := range x.Members {
		m := &x.Members[k]
		switch m.Standing {
		case record.Waiting:
			m.Standing, m.Reason = record.Rejected, "its turn had not come when the ensemble ended: "+s.Row.Reason
		case record.Deferred:
			m.Standing = record.Rejected
		case record.Begun:
			r, known := s.Runs[m.Run]
			if !known { // it was removed before it was seen to be over
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

// admit asks the policy about workflows, in the order of their priorities.
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

// held is for how long a pilot is held whose cpus take so much of tasks' time between them.
func (d Direction) held(runtime time.Duration) time.Duration {
	return runtime / time.Duration(max(1, d.Problem.Machines.Slots))
}

// roots is how many tasks have no parents.
func roots(g *dag.Graph) (n int) {
	for i := range g.Len() {
		if len(g.Parents(i)) == 0 {
			n++
		}
	}
	return n
}

// end says how the workflows of an ensemble ended of which none is left that may be run.
func (x *Decision) end() string {
	if (record.Progress{Members: x.Members}).Completed() == len(x.Members) {
		return "all its workflows are completed"
	}
	return "no other workflow of it can be completed"
}

// idle reports whether no task is left that may still run.
func (x *Decision) idle() bool {
	return len(x.Begin) == 0 && !slices.ContainsFunc(x.Members, func(m record.Member) bool {
		return m.Standing == record.Waiting || m.Standing == record.Begun
	})
}

// step asks the policy about pilots. Tasks that are about to be taken by a pilot count as if they had been. Without any
// pilot, and without the money for one, nothing more will come of the ensemble.
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

// poor says that too little money is left.
func (d Direction) poor(spent cost.Money) string {
	t, budget := d.Problem.Terms, d.Problem.Terms.Amount(d.Problem.Budget)
	if spent >= d.Problem.Budget {
		return fmt.Sprintf("its money is spent: %s", budget)
	}
	return fmt.Sprintf("%s of its %s are spent, and the rest pays for no other pilot", t.Amount(spent), budget)
}

// taken is the view once pilots that are free have taken tasks that are ready.
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

// lasting says how long each of n pilots is asked for: so that it is gone by the deadline, and no longer than the
// budget pays for while all are held that are there. So it is kept by the batch system while nobody looks. The last one
// may be paid for less, or for too little to ask for it. The pilots of a static plan, which are held for different
// times, are let go by whoever looks.
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

// lengths is how long n periods are.
func lengths(n int64, period time.Duration) time.Duration {
	if n > math.MaxInt64/int64(period) {
		return math.MaxInt64
	}
	return time.Duration(n) * period
}

// leastHeld is the least time for which a pilot is asked for.
const leastHeld = 10 * time.Second

// early is how long before its time a decision about pilots may be made: the next look would come after it.
const early = lookEvery + 200*time.Millisecond

// shortest is the least time between two decisions about pilots.
const shortest = time.Second
