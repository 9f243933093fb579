package ensembles

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/ensemble/record"
	"github.com/corral-pilot/corral/plan/planner/rehearsal"
)

// A Direction defines how an ensemble is carried out; it never changes.
type Direction struct {
	Problem rehearsal.Problem // Machines.Most limits the number of pilots at a time
	Policy  ensemble.Strategy
	Patient bool // the policy is consulted about a workflow only when a pilot is free for it
	Static  bool // the plan determines how long a pilot is held
}

// A Sight is the known state of an ensemble at an instant.
type Sight struct {
	Row      record.Ensemble
	Now      time.Time
	Glideins []corral.Glidein // the ensemble's glideins with their attempts, in the order of their requests
	Workers  []corral.Worker  // of its cluster
	Runs     map[corral.RunID]corral.Run
	Begun    time.Duration // estimated time of the unfinished tasks of begun workflows
	Due      time.Duration // time of the next decision about pilots
	Closed   string        // why its site will never accept a pilot again; "": it may accept one
	Refusal  string        // why no new pilots or runs may be requested for its owner; "": they may
}

// since returns the time from the ensemble's creation to an instant.
func (s Sight) since(at time.Time) time.Duration { return max(0, at.Sub(s.Row.CreatedAt)) }

// A room is the capacity of a glidein's workers.
type room struct{ slots, busy int }

// rooms returns the room of each glidein that has workers.
func (s Sight) rooms() map[corral.GlideinID]room {
	all := map[corral.GlideinID]room{}
	for _, w := range s.Workers {
		if !w.Connected {
			continue
		}
		r := all[w.Glidein]
		all[w.Glidein] = room{r.slots + w.CPUs, r.busy + min(w.CPUs, max(w.RunningTasks, w.CPUs-w.CPUsFree))}
	}
	return all
}

// view returns the policy's view, in which each glidein is a machine, numbered in the order of requests. The cost of a
// glidein that was ordered to end counts as spent, including the cost of the time that it may still need to end.
func (s Sight) view(d Direction) ensemble.View {
	v := ensemble.View{Now: s.since(s.Now), Asked: len(s.Glideins)}
	rooms := s.rooms()
	for number, g := range s.Glideins {
		m := ensemble.Instance{ID: number, Slots: s.Row.Pilots.CPUs}
		for _, a := range g.Attempts {
			switch {
			case a.StartedAt.IsZero():
			case !a.Live():
				v.Ended = v.Ended.Plus(d.Problem.Terms.Cost(a.EndedAt.Sub(a.StartedAt)))
			case g.Asked != corral.AskNothing:
				v.Ended = v.Ended.Plus(d.Problem.Terms.Cost(s.Now.Sub(a.StartedAt) + d.Problem.Leaving))
			default:
				m.Held, m.From = true, s.since(a.StartedAt)
			}
		}
		if g.State.Terminal() || g.Asked != corral.AskNothing {
			continue
		}
		if r, ok := rooms[g.ID]; ok && m.Held {
			m.Ready, m.Slots, m.Busy = true, r.slots, r.busy
		}
		v.Machines = append(v.Machines, m)
	}
	return v
}

// spent returns the cost of all pilots until now.
func (s Sight) spent(t ensemble.Terms) (sum cost.Money) {
	for _, g := range s.Glideins {
		for _, a := range g.Attempts {
			end := a.EndedAt
			if a.Live() {
				end = s.Now
			}
			if !a.StartedAt.IsZero() {
				sum = sum.Plus(t.Cost(end.Sub(a.StartedAt)))
			}
		}
	}
	return sum
}

// free returns the number of additional tasks that could begin at once: the number of slots without a task, minus the
// number of ready tasks.
func (s Sight) free(v ensemble.View) (n int) {
	for _, m := range v.Machines {
		if m.Ready {
			n += m.Slots - m.Busy
		}
	}
	return n - s.ready()
}

// ready returns how many tasks of begun workflows wait for a pilot.
func (s Sight) ready() (n int) {
	for _, m := range s.Row.Members {
		if r := s.Runs[m.Run]; m.Standing == record.Begun && !r.State.Over() {
			n += r.Tasks.Ready
		}
	}
	return n
}

// owed returns the total cost of the pilots that were not ordered to end, assuming that they use their whole walltimes.
func (s Sight) owed(p rehearsal.Problem) (sum cost.Money) {
	for _, g := range s.Glideins {
		if g.State.Terminal() || g.Asked != corral.AskNothing {
			continue
		}
		walltime := time.Duration(g.Walltime)
		sum = sum.Plus(p.Terms.Cost(walltime - jobfiles.Reserve(walltime) + p.Leaving))
	}
	return sum
}
