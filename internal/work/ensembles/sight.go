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

// A Direction is by what an ensemble is carried out; it never changes.
type Direction struct {
	Problem rehearsal.Problem // Machines.Most is the most pilots at a time
	Policy  ensemble.Policy
	Patient bool // a workflow is asked about only when a pilot is free for it
	Static  bool // the plan says until when a pilot is held
}

// A Sight is what is known of an ensemble at an instant.
type Sight struct {
	Row      record.Ensemble
	Now      time.Time
	Glideins []corral.Glidein // its own, in the order in which they were asked for, with their attempts
	Workers  []corral.Worker  // of its cluster
	Runs     map[corral.RunID]corral.Run
	Begun    time.Duration // what the tasks take that have not ended of workflows that were begun
	Due      time.Duration // when to decide about pilots again
	Closed   string        // why its site will never again take a pilot; "": it may
	Refusal  string        // why nothing new is asked for on behalf of its owner; "": it may be
}

// since is an instant as the ensemble counts.
func (s Sight) since(at time.Time) time.Duration { return max(0, at.Sub(s.Row.CreatedAt)) }

// A room is what the workers of a glidein have.
type room struct{ slots, busy int }

// rooms says what each glidein has that has workers.
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

// view is what the policy sees: a glidein is a machine, whose number is its place among those that were asked for. One
// that was told to go counts in what was spent, for as long as it may still take to go.
func (s Sight) view(d Direction) ensemble.View {
	v := ensemble.View{Now: s.since(s.Now), Asked: len(s.Glideins)}
	rooms := s.rooms()
	for number, g := range s.Glideins {
		m := ensemble.Machine{ID: number, Slots: s.Row.Pilots.CPUs}
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

// spent is what all pilots have cost until now.
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

// free is how many tasks more would begin at once: slots without a task, less tasks that are ready.
func (s Sight) free(v ensemble.View) (n int) {
	for _, m := range v.Machines {
		if m.Ready {
			n += m.Slots - m.Busy
		}
	}
	return n - s.ready()
}

// ready is how many tasks of workflows that were begun wait for a pilot.
func (s Sight) ready() (n int) {
	for _, m := range s.Row.Members {
		if r := s.Runs[m.Run]; m.Standing == record.Begun && !r.State.Over() {
			n += r.Tasks.Ready
		}
	}
	return n
}

// owed is what the pilots that were not told to go will have cost when their walltimes are over.
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
