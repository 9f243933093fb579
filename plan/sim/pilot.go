package sim

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// A pilot is one attempt of a glidein: a job in the site's queue, then a supervisor with a worker on each host. The
// production code in attempt.Stay and attempt.Roster determines how long the pilot stays, and why it leaves.
type pilot struct {
	s       *site
	glidein corral.Glidein
	job     corral.Job
	number  int // index among the site's pilots
	held    int // index in the trace

	stay     *attempt.Stay // nil: the pilot is queued
	roster   *attempt.Roster
	members  []*member // the worker on each host; empty: no workers yet
	admitted bool      // started by the site's simulated queue, if any: it holds processors there
	draining bool
	vacated  bool // all workers have left, and their daemons are about to end
	over     bool
	idleAt   time.Duration // time of the next check for idleness
}

func (p *pilot) cpus() int { return p.glidein.Hosts * p.glidein.CPUs }

// start starts the pilot if there is room for it.
func (p *pilot) start() {
	if p.over {
		return
	}
	ok, from := p.s.room(p)
	switch {
	case from > 0:
		p.s.at(from, p.start)
		return
	case !ok:
		p.s.blocked = append(p.s.blocked, p)
		return
	}
	p.begin()
}

// begin starts the pilot's job, and schedules the events that follow.
func (p *pilot) begin() {
	if p.over {
		return
	}
	p.s.cpus += p.cpus()
	p.s.held.Add(p.glidein.Hosts, p.glidein.Host())
	p.s.sim.trace.Pilots[p.held].Start = p.s.now
	now, order := p.s.time(), orderOf(p.glidein)
	p.s.sees(p, reconcile.Sighting{Phase: reconcile.Running, StartedAt: now})
	p.s.apply(reconcile.LeaseJob{Job: p.job.ID, Holder: p.job.Tag})
	p.stay = attempt.NewStay(now, order)
	p.roster = attempt.NewRoster(p.job.Tag, order, nil, "")
	p.s.atFirst(p.s.now+p.s.Overhead, p.ready) // its workers may take the tasks that become ready when they come
	p.s.at(p.s.since(p.stay.End), p.consider)
	if f := p.s.sim.Failures.Pilot; f != nil {
		if after, ok := f(p.s.Name, p.number); ok {
			p.s.after(after, func() { p.die(reconcile.BySite) })
		}
	}
	for i := range p.roster.Workers {
		if f := p.s.sim.Failures.Host; f != nil {
			if after, ok := f(Host{p.s.Name, p.number, i}); ok {
				p.s.after(after, func() { p.loseHost(i) })
			}
		}
	}
}

// ready registers the workers.
func (p *pilot) ready() {
	left := p.s.since(p.stay.End) - p.s.now
	if p.over || p.draining || left <= 0 {
		return
	}
	host, speed := hostOf(p.s, p.glidein), orderOf(p.glidein).Speed
	cut := p.s.time().Add(matching.CutAfter(left))
	p.s.sim.trace.Pilots[p.held].Ready = p.s.now
	for i, w := range p.roster.Workers {
		m := &member{c: p.s.sim.cluster, pilot: p, host: Host{p.s.Name, p.number, i}, idleSince: p.s.now - p.rested(),
			running: p.begunOn(i)}
		m.slot = matching.Slot[*entry]{ID: w.ID, Host: host, EndsAt: cut, Speed: speed}
		m.room = matching.Room{Host: host, CutAt: cut, Speed: speed}
		if past := p.past(); past != nil {
			m.slot.EndsAt = p.s.time().Add(min(past.Until, p.s.since(cut)-p.s.now))
			m.resume()
		}
		p.members = append(p.members, m)
	}
	registered := 0
	for i, m := range p.members {
		if p.lost(i) {
			m.phase = gone
			continue
		}
		registered++
		p.roster.Workers[i].Start()
		p.roster.Workers[i].Register(p.s.time().Add(-p.rested()))
		p.s.sim.cluster.join(m)
	}
	p.s.apply(reconcile.NoteWorkers{Job: p.job.ID, Workers: registered})
	p.s.at(p.s.since(cut), p.expire)
	p.idle(nil)
}

func (p *pilot) past() *Past { return p.s.sim.pasts[p.glidein.ID] }

// begunOn returns the jobs that run on a host from the beginning.
func (p *pilot) begunOn(host int) (jobs []*entry) {
	if past := p.past(); past != nil {
		for _, r := range past.Running {
			if e := p.s.sim.cluster.begun[r.Task]; r.Host == host && e != nil {
				jobs = append(jobs, e)
			}
		}
	}
	return jobs
}

// rested returns how long the workers had no task before they joined.
func (p *pilot) rested() time.Duration {
	if past := p.past(); past != nil {
		return past.Idle
	}
	return 0
}

// WalltimeFor returns the walltime that allows tasks to run for the given time at a site without overhead: it adds the
// reserves of the pilot and of its workers.
func WalltimeFor(tasks time.Duration) time.Duration {
	walltime := tasks
	for {
		left := matching.CutAfter(walltime - jobfiles.Reserve(walltime))
		if left >= tasks {
			return walltime
		}
		walltime += tasks - left
	}
}

// lost reports whether a host failed before its worker registered.
func (p *pilot) lost(host int) bool {
	for _, l := range p.roster.Lost {
		if l.Host == host {
			return true
		}
	}
	return false
}

// expire makes the workers leave at the end of their time.
func (p *pilot) expire() {
	if !p.over {
		p.dismiss(attempt.LeftExpired)
	}
}

// dismiss makes all workers leave at once.
func (p *pilot) dismiss(why attempt.Left) {
	for i, m := range p.members {
		if m.phase == gone {
			continue
		}
		m.leave(string(why))
		p.roster.Leave(p.roster.Workers[i], why, "")
	}
	p.consider()
}

// idle is called when a worker has no jobs: a draining worker then leaves; otherwise idle schedules a later check of
// whether the pilot has been idle for too long.
func (p *pilot) idle(m *member) {
	switch limit := time.Duration(p.glidein.Idle); {
	case p.over:
	case m != nil && m.phase == draining:
		p.s.after(0, p.release)
	case limit > 0 && p.idleAt < p.s.now+limit:
		at := wholeUp(max(p.s.now+limit, p.s.since(p.stay.IdleFrom())))
		if m == nil {
			at = max(p.s.now, at-p.rested()) // the workers have just joined
		}
		p.idleAt = at
		p.s.at(at, func() {
			if p.idleAt == at {
				p.consider()
			}
		})
	}
}

// release makes draining workers that have no jobs leave.
func (p *pilot) release() {
	if p.over {
		return
	}
	for i, m := range p.members {
		if m.phase == draining && m.empty() {
			m.leave(string(attempt.LeftDrained))
			p.roster.Leave(p.roster.Workers[i], attempt.LeftDrained, "")
		}
	}
	p.consider()
}

// consider checks, by the production rules, whether the pilot has a reason to leave, and ends it once no worker is
// left.
func (p *pilot) consider() {
	if p.over || p.stay == nil {
		return
	}
	now := p.s.time()
	for i, m := range p.members {
		if m.phase != gone {
			since := time.Duration(0)
			if m.empty() {
				since = p.s.now - m.idleSince
			}
			p.roster.Workers[i].Idle(since, now)
		}
	}
	p.stay.Consider(now, attempt.Sight{}, p.roster)
	switch p.stay.Phase() {
	case attempt.Staying:
	case attempt.Draining:
		p.drain()
	case attempt.Leaving:
		for _, m := range p.members {
			m.leave(string(attempt.LeftExpired))
		}
	}
	if p.stay.Over(now, p.vacant()) && !p.vacated {
		p.vacated = true
		p.leave()
	}
}

// leave ends the pilot in an orderly way, once its workers' daemons have ended.
func (p *pilot) leave() {
	report := p.stay.Report(p.roster)
	end := func() {
		if !p.over {
			p.end(reconcile.Sighting{Report: &reconcile.Report{
				Outcome: report.Outcome, Transient: report.Transient, Reason: report.Reason, Lost: report.Lost,
			}})
		}
	}
	if p.s.sim.Cluster.Leave == 0 {
		end()
		return
	}
	p.s.after(p.s.sim.Cluster.Leave, end)
}

// vacant reports whether no worker is left.
func (p *pilot) vacant() bool {
	for _, m := range p.members {
		if m.phase != gone {
			return false
		}
	}
	return true
}

// drain lets the workers finish their running tasks and leave.
func (p *pilot) drain() {
	if p.draining {
		return
	}
	p.draining = true
	if len(p.members) == 0 && p.stay != nil && p.stay.Phase() == attempt.Staying {
		p.stay.Drain(corral.OutcomeDrained, "asked to drain")
	}
	for _, m := range p.members {
		m.drain()
	}
	p.s.after(0, p.release)
}

// cancel ends the pilot as a cancellation by its site does: running tasks are cut off.
func (p *pilot) cancel() {
	if p.over {
		return
	}
	for _, m := range p.members {
		m.leave(string(attempt.LeftTerminated))
	}
	p.end(reconcile.Sighting{Killed: reconcile.ByCancel})
}

// die ends the pilot abruptly.
func (p *pilot) die(by reconcile.Killed) {
	if p.over {
		return
	}
	for _, m := range p.members {
		m.vanish()
	}
	p.end(reconcile.Sighting{Killed: by})
}

// loseHost makes one host fail; if it is the first host, where the supervisor runs, the pilot dies.
func (p *pilot) loseHost(i int) {
	switch {
	case p.over:
	case i == 0:
		p.die(reconcile.ByNode)
	default:
		if len(p.members) > 0 {
			p.members[i].vanish()
		}
		lost := p.roster.Leave(p.roster.Workers[i], attempt.LeftUnable, "its host failed")
		p.s.apply(reconcile.LoseHost{Job: p.job.ID, Host: *lost})
		p.consider()
	}
}

// end ends the pilot's job.
func (p *pilot) end(see reconcile.Sighting) {
	p.over = true
	h := &p.s.sim.trace.Pilots[p.held]
	if h.Start >= 0 {
		p.s.cpus -= p.cpus()
		p.s.held.Add(-p.glidein.Hosts, p.glidein.Host())
		see.StartedAt = p.s.begin.Add(h.Start)
	}
	h.End = p.s.now
	if p.s.batch != nil {
		p.s.batch.finish(p)
	}
	see.Phase, see.EndedAt = reconcile.Ended, p.s.time()
	p.s.sim.run.changed = true
	p.s.after(0, p.s.unblock)
	p.s.after(p.seen(), func() {
		delete(p.s.pilots, p.job.ID)
		p.s.sees(p, see)
	})
}

// offers appends the capacity that glideins have yet to provide, computed as in production's gate. present holds the
// number of registered cpus of each attempt.
func (s *site) offers(all []execution.Capacity, present map[corral.JobID]int, at time.Time) []execution.Capacity {
	for i := range s.world.Glideins {
		g := &s.world.Glideins[i]
		if left, ok := attempt.ToCome(g, present, at); ok {
			all = append(all, execution.Offering(g.Host(), left, g.Speed))
		}
	}
	return all
}
