package revision_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/revision"
	"github.com/corral-pilot/corral/plan/sim"
)

// An asked is a pilot that was requested in the simulator. Glideins are numbered in the order of requests.
type asked struct {
	plan.Pilot
	told corral.Ask
}

// A control revises a plan in the simulator, as internal/work/provision does in corrald.
type control struct {
	tb      testing.TB
	problem plan.Problem
	plan    *plan.Plan
	every   time.Duration
	pilots  []asked
	before  revision.Before
	said    []revision.Decision // the non-empty ones
	at      []time.Duration
}

// grace exceeds the time that the simulator takes to end a pilot, which is 0.
const grace = 10 * time.Millisecond

// steer is the function for sim.Scenario.Control.
func (c *control) steer(now time.Duration, seen sim.View) (asks []sim.Ask) {
	d, err := revision.Decide(c.view(now, seen))
	if err != nil {
		c.tb.Errorf("after %s: %v", now, err)
	}
	if d.Empty() {
		return nil
	}
	c.said, c.at = append(c.said, d), append(c.at, now)
	c.before.Number++
	if len(d.Add)+len(d.Drop) > 0 && !onlyIdle(d) {
		c.before.At = now
	}
	c.before.Late = d.News == revision.Late || c.before.Late && d.News != revision.InTime
	c.before.Broke = c.before.Broke || d.News == revision.Broke
	c.before.Limited = len(d.Add) == 0 && (c.before.Limited || d.News == revision.Limited ||
		d.News == revision.Late && len(d.Limits) > 0)
	for _, drop := range d.Drop {
		ask := corral.AskDrain
		if drop.Cancel {
			ask = corral.AskCancel
		}
		c.pilots[drop.Pilot].told = ask
		asks = append(asks, sim.Ask{Release: ask, Glidein: corral.GlideinID(drop.Pilot + 1)})
	}
	before := len(c.pilots)
	for _, q := range d.Add {
		c.pilots = append(c.pilots, asked{Pilot: q})
	}
	return append(asks, sim.AsksFor(d.Add, before, time.Minute)...)
}

// view converts the simulator's view for a decision.
func (c *control) view(now time.Duration, seen sim.View) revision.View {
	v := revision.View{Now: now, Goal: c.plan.Goal, Promise: time.Duration(c.plan.Makespan), Problem: c.problem,
		Before: c.before, Period: c.every, Grace: grace}
	latest := map[corral.GlideinID]int{} // :: glidein → its latest attempt
	for k, h := range seen.Pilots {
		latest[h.Glidein] = k
	}
	v.Problem.Sites = append([]plan.Site(nil), c.problem.Sites...)
	of := map[int]int{} // :: attempt → pilot
	for i, a := range c.pilots {
		q := revision.Pilot{Pilot: a.Pilot, Number: i, Began: -1, Ended: -1, Keep: time.Minute,
			Cancelled: a.told == corral.AskCancel}
		s := &v.Problem.Sites[0]
		q.Host = corral.Resources{CPUs: q.CPUs, MemoryMiB: s.Host.MemoryMiB, GPUs: s.Host.GPUs, DiskMiB: s.Host.DiskMiB}
		q.Tariff, q.Overhead, q.Margin, q.Transfer = s.Tariff, s.Overhead, s.Margin, s.Transfer
		q.Wait = s.Wait(plan.Shape{Hosts: q.Hosts, Host: q.Host, Walltime: time.Duration(q.Walltime)})
		if k, ok := latest[corral.GlideinID(i+1)]; ok {
			of[k] = i
			h := seen.Pilots[k]
			q.Submit, q.Began, q.Ended = corral.Seconds(h.Submit), h.Start, h.End
			switch {
			case h.End >= 0:
				q.Phase = revision.Gone
			case h.Start < 0:
				q.Phase = revision.Queued
			case h.Ready < 0:
				q.Phase = revision.Booting
			default:
				q.Phase = revision.Working
			}
		}
		if a.told != "" && q.Phase < revision.Booting {
			q.Phase = revision.Gone
		} else if a.told != "" && q.Phase < revision.Gone {
			q.Phase = revision.Leaving
		}
		if q.Phase != revision.Gone {
			s.CPUs, s.Pilots = s.CPUs-q.HeldCPUs(), s.Pilots-1
		}
		v.Pilots = append(v.Pilots, q)
	}
	c.beside(&v, seen, latest)
	c.tasks(&v, seen, of)
	return v
}

// beside adds the earlier attempts of the pilots, and the attempts that may follow those that were lost.
func (c *control) beside(v *revision.View, seen sim.View, latest map[corral.GlideinID]int) {
	for k, h := range seen.Pilots {
		q := v.Pilots[h.Glidein-1]
		switch {
		case latest[h.Glidein] != k:
			q.Phase, q.Began, q.Ended = revision.Gone, h.Start, h.End
		case q.Phase == revision.Gone && c.pilots[h.Glidein-1].told == "":
			q.Phase, q.Began, q.Ended = revision.Queued, -1, -1
		default:
			continue
		}
		v.Beside = append(v.Beside, q)
	}
}

// tasks fills in the progress of tasks and the idle times of pilots.
func (c *control) tasks(v *revision.View, seen sim.View, of map[int]int) {
	workers := seen.Workers()
	for _, at := range workers {
		q := &v.Pilots[of[at.Pilot]]
		if q.Idle = at.Idle; at.Idle < 0 {
			q.Idle = 0
		}
	}
	for _, at := range workers {
		if at.Idle < 0 {
			v.Pilots[of[at.Pilot]].Idle = 0
		}
	}
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, p := range seen.Progress() {
		t := revision.Task{State: p.State, Pilot: -1, Took: p.Took}
		if at, ok := workers[p.Worker]; ok && p.State == corral.TaskRunning {
			t.Pilot, t.Host, t.Since = of[at.Pilot], at.Host, p.Since.Sub(begin)
		}
		v.Tasks = append(v.Tasks, t)
	}
}

// hpc returns a site with a queue wait.
func hpc(wait time.Duration) sim.Site {
	return sim.Site{Site: plan.Site{
		Name: "hpc", Host: corral.Resources{CPUs: 8, MemoryMiB: 64000, GPUs: plan.Unlimited, DiskMiB: plan.Unlimited},
		Hosts: 10, Pilots: 100, CPUs: 400, Walltime: 24 * time.Hour, Overhead: 5 * time.Second, Margin: 70 * time.Second,
		Tariff: plan.CoreHours, Wait: func(plan.Shape) time.Duration { return wait },
	}}
}

// work converts the simulator's work for the planner; each task's kind is the beginning of its ID.
func work(s execution.Spec) plan.Work {
	w := plan.Work{Name: "work", Graph: s.Graph}
	for _, x := range s.Tasks {
		w.Tasks = append(w.Tasks, plan.Task{ID: x.ID, Kind: x.ID[:1], Runtime: x.Estimate,
			Needs: corral.Resources{CPUs: x.CPUs, MemoryMiB: x.MemoryMiB}})
	}
	return w
}

// play plans work for a goal, and simulates the plan with revisions; ok is false if there is no plan.
func play(tb testing.TB, s execution.Spec, at sim.Site, goal plan.Goal, edit func(*sim.Scenario)) (*control, *sim.Trace,
	bool) {
	tb.Helper()
	cluster := plan.Cluster{Hop: 2 * time.Millisecond}
	c := &control{tb: tb, every: time.Second,
		problem: plan.Problem{Work: work(s), Sites: []plan.Site{at.Site}, Cluster: cluster}}
	p, err := planner.Make(c.problem, goal, planner.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	if !p.Feasible {
		return c, nil, false
	}
	c.plan = p
	scenario := sim.Scenario{Work: s, Sites: []sim.Site{at}, Cluster: sim.Cluster{Cluster: cluster}, Control: c.steer,
		Every: c.every}
	for _, q := range p.Pilots {
		c.pilots = append(c.pilots, asked{Pilot: q})
	}
	scenario.Asks = sim.AsksFor(p.Pilots, 0, time.Minute)
	if edit != nil {
		edit(&scenario)
	}
	return c, sim.Run(scenario), true
}

// paid returns the cost of the pilots of a trace.
func paid(t *sim.Trace, tariff plan.Tariff) (sum cost.Money) {
	for _, h := range t.Pilots {
		if h.Start >= 0 {
			_, m := tariff.Bill(plan.Pilot{
				Shape: corral.Shape{Hosts: h.Hosts, CPUs: h.CPUs},
				Start: corral.Seconds(h.Start),
				End:   corral.Seconds(h.End)})
			sum = sum.Plus(m)
		}
	}
	return sum
}
