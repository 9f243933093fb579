package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/nodes"
)

// A site represents one queue of a site together with corrald's records of it: the world of the production code, which
// the production rules change. The actions of Decide are performed at once, as by an engine that sees everything
// without delay.
type site struct {
	*clock
	Site
	sim     *simulation
	world   reconcile.World
	pilots  map[corral.JobID]*pilot // pilots whose end corrald has not yet seen
	count   int                     // number of pilots so far
	cpus    int                     // number of held cpus
	held    *nodes.Tally            // held hosts
	blocked []*pilot                // pilots that are due to start, but for which there is no room
	batch   *batch                  // nil: waits are random

	settling bool // a call of settle is scheduled for the current instant
	due      time.Duration
}

func newSite(s *simulation, id corral.SiteID, of Site) *site {
	x := &site{clock: s.clock, sim: s, Site: of, pilots: map[corral.JobID]*pilot{}, held: nodes.NewTally(of.Nodes)}
	now := s.time()
	row := corral.Site{
		ID: id, Name: of.Name, State: corral.SiteNew, CreatedAt: now, UpdatedAt: now,
		BatchOptions: corral.BatchOptions{Queue: of.Queue}, Credentials: of.Credentials,
	}
	if of.Pilots > 0 && of.Pilots < plan.Unlimited {
		row.Limits.MaxRunning = of.Pilots
	}
	x.world.Site = row
	if of.Batch != nil {
		x.batch = newBatch(x, of.Batch)
	}
	x.apply(reconcile.MoveSite{Move: corral.SiteStage})
	x.apply(reconcile.MoveSite{Move: corral.SiteStaged})
	return x
}

// apply changes the world, and reports whether anything changed. After a change a decision may be necessary.
func (s *site) apply(c reconcile.Change) bool {
	entries, err := s.world.Apply(c, s.time())
	if err != nil && corral.KindOf(err) != corral.Conflict && corral.KindOf(err) != corral.NotFound {
		panic(fmt.Sprintf("%T%+v: %v", c, c, err)) // unreachable: rules refuse changes only with these kinds
	}
	if len(entries) > 0 {
		s.sim.run.changed = true
		s.plan()
	}
	return len(entries) > 0
}

// plan schedules the actions of Decide after all other events of this instant.
func (s *site) plan() {
	if !s.settling {
		s.settling = true
		s.after(0, s.settle)
	}
}

// settleRounds is the maximum number of rounds of decisions; Decide needs far fewer to converge.
const settleRounds = 100

// settle performs the actions of Decide until Decide returns no new actions, and schedules the next decision that
// depends on time alone.
func (s *site) settle() {
	for range settleRounds {
		changed := false
		for _, a := range reconcile.Decide(s.time(), s.world) {
			changed = s.perform(a) || changed
		}
		if !changed {
			break
		}
	}
	s.settling = false
	due := reconcile.Due(s.time(), s.world)
	if due.IsZero() {
		return
	}
	if at := max(s.now+time.Millisecond, s.since(due)); s.due <= s.now || at < s.due {
		s.due = wholeUp(at)
		s.at(at, s.plan)
	}
}

// perform performs one action, and reports whether it changed anything.
func (s *site) perform(a reconcile.Action) bool {
	switch a := a.(type) {
	case reconcile.Submit:
		s.sim.jobs++
		a.ID, a.Tag = s.sim.jobs, s.sim.tag(s.sim.jobs)
		if !s.apply(a) {
			return false
		}
		s.submitted(a.ID, a.Glidein)
		return true
	case reconcile.Cancel:
		changed := s.apply(a)
		if p := s.pilots[a.Job.ID]; p != nil && !p.over {
			p.cancel()
			return true
		}
		return changed
	case reconcile.Drain:
		changed := s.apply(a)
		if p := s.pilots[a.Job.ID]; p != nil && !p.over && !p.draining {
			p.drain()
			return true
		}
		return changed
	case reconcile.Change:
		return s.apply(a)
	}
	return false
}

// glidein returns a glidein of the world.
func (s *site) glidein(id corral.GlideinID) (corral.Glidein, bool) {
	i, ok := slices.BinarySearchFunc(s.world.Glideins, id, func(g corral.Glidein, id corral.GlideinID) int {
		return cmp.Compare(g.ID, id)
	})
	if !ok {
		return corral.Glidein{}, false
	}
	return s.world.Glideins[i], true
}

// submitted adds a pilot to the site's queue, or rejects it.
func (s *site) submitted(id corral.JobID, of corral.GlideinID) {
	g, _ := s.glidein(of)
	j := g.Attempts[len(g.Attempts)-1]
	why := s.refuses(g)
	if why == "" && s.batch != nil {
		why = s.batch.submit(id, shapeOf(s, g))
	}
	if why != "" {
		s.apply(reconcile.MoveJob{Job: id, Event: corral.JobEvent{
			Move: corral.JobEnd, Outcome: corral.OutcomeFailed, Reason: "the site refused it: " + why,
		}})
		return
	}
	s.apply(reconcile.MoveJob{Job: id, Event: corral.JobEvent{Move: corral.JobSubmit, SiteJobID: j.Tag}})
	p := &pilot{s: s, glidein: g, job: j, number: s.count}
	p.held = len(s.sim.trace.Pilots)
	memory := g.MemoryMiB
	if memory >= plan.Unlimited {
		memory = 0
	}
	s.sim.trace.Pilots = append(s.sim.trace.Pilots, Held{
		Site: s.Name, Queue: s.Queue, Glidein: g.ID, Attempt: j.Number, Hosts: g.Hosts, CPUs: g.CPUs, MemoryMiB: memory,
		GPUs:     g.GPUs,
		Walltime: time.Duration(g.Walltime), Submit: s.now, Start: -1, Ready: -1, End: -1, Tag: j.Tag,
	})
	s.pilots[id] = p
	s.count++
	if s.batch != nil {
		return // the queue starts the pilot
	}
	if wait := s.wait(p); wait < Never {
		s.after(wait, p.start)
	}
}

// refuses returns the reason why no pilot of this shape can run at the site, or "" if it can.
func (s *site) refuses(g corral.Glidein) string {
	host := hostOf(s, g)
	switch {
	case !host.FitIn(s.Host):
		return fmt.Sprintf("no host has %s", host)
	case g.Hosts > s.Hosts || s.CPUs > 0 && g.Hosts*g.CPUs > s.CPUs:
		return fmt.Sprintf("%d hosts are more than it allows", g.Hosts)
	case s.Walltime > 0 && time.Duration(g.Walltime) > s.Walltime:
		return fmt.Sprintf("a walltime of %s is longer than %s", time.Duration(g.Walltime), s.Walltime)
	}
	return ""
}

// hostOf returns the resources of each host of a glidein: the requested resources, and all the disk space of the site's
// largest host.
func hostOf(s *site, g corral.Glidein) corral.Resources {
	host := g.Host()
	host.DiskMiB = s.Host.DiskMiB
	return host
}

// shapeOf returns the shape of a glidein for plans.
func shapeOf(s *site, g corral.Glidein) plan.Shape {
	return plan.Shape{Hosts: g.Hosts, Walltime: time.Duration(g.Walltime), Host: hostOf(s, g)}
}

func (s *site) wait(p *pilot) time.Duration {
	shape := shapeOf(s, p.glidein)
	switch {
	case s.Draw != nil:
		return s.Draw(shape, p.number)
	case s.Wait != nil:
		return s.Wait(shape)
	}
	return 0
}

// usualPoll is the delay between a registration or departure of workers and the poll that production then makes.
const usualPoll = 50 * time.Millisecond

// seen returns the delay after which corrald sees the end of a pilot.
func (p *pilot) seen() time.Duration {
	if p.s.Seen == nil {
		return usualPoll
	}
	return p.s.Seen(p.number)
}

// room reports whether the site can run a pilot now. If a maintenance period prevents it, from is the end of that
// period.
func (s *site) room(p *pilot) (ok bool, from time.Duration) {
	span := plan.Span{From: s.now, To: s.now + time.Duration(p.glidein.Walltime)}
	for _, c := range s.Closed {
		if c.Overlaps(span) {
			return false, c.To
		}
	}
	if s.CPUs > 0 && s.cpus+p.cpus() > s.CPUs {
		return false, 0
	}
	return len(s.Nodes) == 0 || s.held.Takes(p.glidein.Hosts, p.glidein.Host()), 0
}

// unblock starts the blocked pilots for which there is room again, in the order of their arrival.
func (s *site) unblock() {
	blocked := s.blocked
	s.blocked = nil
	for _, p := range blocked {
		p.start()
	}
}

// sees applies an observation of a pilot in the batch system to corrald's records.
func (s *site) sees(p *pilot, see reconcile.Sighting) {
	g, ok := s.glidein(p.glidein.ID)
	if !ok {
		return // corrald considers it over
	}
	i := slices.IndexFunc(g.Attempts, func(j corral.Job) bool { return j.ID == p.job.ID })
	if i < 0 {
		return
	}
	see.Known, see.ID = true, p.job.Tag
	see.Overdue, see.Hopeless = s.world.Overdue(g.Attempts[i])
	for _, e := range reconcile.Events(g.Attempts[i], see, s.time()) {
		if e.Move == corral.JobEnd {
			h := &s.sim.trace.Pilots[p.held]
			h.Outcome, h.Reason = e.Outcome, e.Reason
		}
		s.apply(reconcile.MoveJob{Job: p.job.ID, Event: e})
		remember(s, p, e)
	}
}

// remember records the wait of a pilot, as the store does, because overlaps depend on such records.
func remember(s *site, p *pilot, e corral.JobEvent) {
	w := corral.Wait{Site: s.Name, Queue: s.Queue, Hosts: p.glidein.Hosts, CPUs: p.glidein.CPUs,
		Walltime: p.glidein.Walltime, SubmittedAt: s.begin.Add(s.sim.trace.Pilots[p.held].Submit)}
	switch {
	case e.Move == corral.JobStart:
		w.StartedAt = e.At
	case e.Move == corral.JobEnd && s.sim.trace.Pilots[p.held].Start < 0:
		w.EndedAt, w.Outcome = e.At, e.Outcome
	default:
		return
	}
	s.world.Waits = append(s.world.Waits, w)
	s.world.Waits = s.world.Waits[max(0, len(s.world.Waits)-reconcile.WaitsKept):]
}

// orderOf returns the request for workers that the pilot of a glidein receives.
func orderOf(g corral.Glidein) jobfiles.PilotOrder {
	return jobfiles.PilotOrder{Shape: g.Shape, Speed: g.Speed, Idle: g.Idle, MinStay: g.MinStay}
}
