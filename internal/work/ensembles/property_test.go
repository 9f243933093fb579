package ensembles

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/ensemble/record"
	"github.com/corral-pilot/corral/plan/planner/rehearsal"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim/cloud"
)

// A site is the site of the property test: its pilots wait and fail at random, and take a while to end.
type site struct {
	rng *rand.Rand
	d   Direction
	Sight
	ends map[corral.GlideinID]time.Time // when a glidein ends that was ordered to end, or that fails
}

// pass lets time pass.
func (w *site) pass(d time.Duration) {
	w.Now = w.Now.Add(d)
	w.Workers = nil
	for i := range w.Glideins {
		g := &w.Glideins[i]
		a := &g.Attempts[0]
		if end, told := w.ends[g.ID]; told && a.Live() && !end.After(w.Now) {
			a.State, a.EndedAt, g.State = corral.JobEnded, end, corral.GlideinFinished
			continue
		}
		if !a.Live() {
			continue
		}
		switch {
		case a.StartedAt.IsZero() && w.rng.IntN(20) == 0:
			a.State, a.StartedAt = corral.JobRunning, w.Now
		case !a.StartedAt.IsZero() && (w.rng.IntN(4000) == 0 || !w.leavesAt(*g).After(w.Now)):
			w.ends[g.ID] = w.Now
		}
		if !a.StartedAt.IsZero() {
			w.Workers = append(w.Workers, corral.Worker{Glidein: g.ID, CPUs: 1, CPUsFree: w.rng.IntN(2), Connected: true})
		}
	}
	for _, m := range w.Row.Members {
		id := m.Run
		if r, ok := w.Runs[id]; ok && !r.State.Over() && w.rng.IntN(300) == 0 {
			r.State, r.EndedAt = []corral.RunState{corral.RunSucceeded, corral.RunFailed}[w.rng.IntN(2)], w.Now
			w.Runs[id] = r
		}
	}
}

// leavesAt returns the time when a pilot has used its walltime, except for its reserve for leaving.
func (w *site) leavesAt(g corral.Glidein) time.Time {
	walltime := time.Duration(g.Walltime)
	return g.Attempts[0].StartedAt.Add(walltime - jobfiles.Reserve(walltime))
}

// unattended returns the total cost of all pilots if no further check follows.
func (w *site) unattended(p rehearsal.Problem) (sum cost.Money) {
	for _, g := range w.Glideins {
		a := g.Attempts[0]
		end, told := w.ends[g.ID]
		switch {
		case !a.Live():
			end = a.EndedAt
		case a.StartedAt.IsZero():
			a.StartedAt = w.Now
			end = w.leavesAt(corral.Glidein{
				Shape:    corral.Shape{Walltime: g.Walltime},
				Attempts: []corral.Job{a}}).Add(p.Leaving)
		case !told:
			end = w.leavesAt(g).Add(p.Leaving)
		}
		if !a.StartedAt.IsZero() {
			sum = sum.Plus(p.Terms.Cost(end.Sub(a.StartedAt)))
		}
	}
	return sum
}

// obey carries out a decision, as the keeper would.
func (w *site) obey(x Decision) {
	for _, id := range x.Stop {
		g := &w.Glideins[id-1]
		g.Asked = corral.AskCancel
		if g.Attempts[0].StartedAt.IsZero() {
			g.State, g.Attempts[0].State, g.Attempts[0].EndedAt = corral.GlideinFinished, corral.JobEnded, w.Now
		} else if _, told := w.ends[id]; !told {
			w.ends[id] = w.Now.Add(time.Duration(w.rng.Int64N(int64(2 * time.Second))))
		}
	}
	for _, walltime := range x.Start {
		w.Glideins = append(w.Glideins, corral.Glidein{ID: corral.GlideinID(len(w.Glideins) + 1), State: corral.GlideinActive,
			Shape:    corral.Shape{Walltime: corral.Seconds(walltime)},
			Attempts: []corral.Job{{State: corral.JobQueued, SubmittedAt: w.Now}}})
	}
	w.Row.Members = x.Members
	for _, k := range x.Begin {
		w.Row.Members[k].Standing, w.Row.Members[k].Run = record.Begun, corral.RunID(k+1)
		w.Runs[corral.RunID(k+1)] = corral.Run{State: corral.RunRunning}
	}
	for _, id := range x.Cancel {
		w.Runs[id] = corral.Run{State: corral.RunCancelled, EndedAt: w.Now}
	}
	if x.Stepped {
		w.Row.Steps++
	}
	if w.Due = x.Next; w.rng.IntN(50) == 0 {
		w.Due = 0 // corrald was restarted
	}
	if x.Ending != "" {
		w.Row.State, w.Row.Reason = record.Ending, x.Ending
	}
	if x.Ended {
		w.Row.State = record.Ended
	}
}

// Whatever happens to pilots and runs, and however often corrald restarts, an ensemble ends, none of its workflows
// remains open, no pilot remains held, and the cost of the pilots never exceeds the budget. Unless a plan determines
// how long pilots are held, this is true even if corrald is gone from any instant on.
func TestTheLedgerIsKept(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		p := rehearsal.Problem{Ensemble: plantest.Random(rng, 6, 20), Leaving: 3 * time.Second, Shared: true,
			Budget: cost.Money(rng.IntN(2_000_000)), Deadline: time.Duration(1+rng.IntN(20)) * time.Minute,
			Terms:    []ensemble.Terms{{Price: 100, Period: exactly}, {Price: 16_667, Period: time.Minute}}[rng.IntN(2)],
			Machines: cloud.Kind{Slots: 1, Queued: true, Most: 1 + rng.IntN(10)}}
		p.Interval = min(90*time.Second, max(2*time.Second, p.Deadline/100))
		choice := rehearsal.Default(Algorithms[1+rng.IntN(len(Algorithms)-1)], p)
		d := Direction{Problem: p, Patient: choice.Algorithm == rehearsal.WADPDS,
			Static: choice.Algorithm == rehearsal.SPSS}
		p.Machines.Ends = p.Deadline
		d.Policy = choice.Policy(p)
		w := site{rng: rng, d: d, ends: map[corral.GlideinID]time.Time{}, Sight: Sight{Now: began,
			Runs: map[corral.RunID]corral.Run{}, Row: record.Ensemble{State: record.Running, CreatedAt: began,
				Pilots: record.Pilots{CPUs: 1, Walltime: corral.Seconds(p.Deadline + jobfiles.Reserve(p.Deadline))}}}}
		for range p.Ensemble {
			w.Row.Members = append(w.Row.Members, record.Member{Standing: record.Waiting})
		}
		for looks := 0; w.Row.State != record.Ended; looks++ {
			w.obey(d.Decide(w.Sight))
			w.pass(time.Duration(100+rng.IntN(500)) * time.Millisecond)
			if spent := w.spent(p.Terms); spent > p.Budget {
				rt.Fatalf("%s: %s of %s are spent after %s", choice, spent, p.Budget, w.since(w.Now))
			}
			if sum := w.unattended(p); !d.Static && sum > p.Budget {
				rt.Fatalf("%s: %s of %s are spent without a look from %s on", choice, sum, p.Budget, w.since(w.Now))
			}
			if looks > 20_000 {
				rt.Fatalf("%s: it does not end: %+v", choice, w.Row)
			}
		}
		for k, m := range w.Row.Members {
			if m.Standing == record.Waiting || m.Standing == record.Begun || m.Standing == record.Deferred {
				rt.Fatalf("workflow %d is %s in the end", k, m.Standing)
			}
		}
		for _, g := range w.Glideins {
			if g.Attempts[0].Live() {
				rt.Fatalf("glidein %d is held in the end", g.ID)
			}
		}
	})
}
