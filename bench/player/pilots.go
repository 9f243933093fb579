package main

import "slices"

// The states of a pilot, in their order.
const (
	planned = iota // not submitted
	queued         // its job waits
	coming         // its job runs, its workers are not there yet
	serving
	leaving // it takes no more tasks
	gone
)

// A pilot is one pilot in a play.
type pilot struct {
	request
	number  int     // index among the plan's pilots; those present follow
	state   int     // one of the above
	site    string  // its name
	speed   float64 // of its hosts
	free    bool    // it was there before the plan, which does not pay for it
	patient seconds // how long it stays without a task
	why     string  // why it never started

	submitted seconds
	started   seconds // of its job; never: it has not started
	ended     seconds // of its job, known as soon as it is leaving
	cut       seconds // when its workers leave at the latest
	resting   seconds // since when it has had no task
	woken     seconds // the latest time at which it wanted a decision
	running   int     // tasks
	turn      int     // number of its submission; those that were present come first
	hosts     []*host // none before its workers are there
	late      bool    // it has been counted as a violation
}

// A host is one worker of a pilot.
type host struct {
	pilot *pilot
	free  resources // not taken by its tasks
	freed seconds   // when a task last ended here
	tasks []int     // those that it runs, or is about to start

	keptFor int // the only task that it takes; -1: any
}

// A held counts the resources that the pilots of a queue hold.
type held struct {
	rack    *rack    // nil: the nodes are not known
	cpus    int      // of the running pilots
	live    int      // pilots that wait or run
	blocked []*pilot // due, but the queue lacks room
}

// enter sets up the pilots: those of the plan, and those that are present.
func (r *run) enter() {
	for i, q := range r.game.pilots {
		s := r.at[i]
		r.pilots = append(r.pilots, &pilot{request: q, number: i, site: s.Site, speed: speedOf(s.Speed),
			patient: r.idle + q.patience(), started: never, ended: never, woken: never})
		if r.queues[s] == nil {
			r.queues[s] = new(held)
			if len(s.Nodes) > 0 {
				r.queues[s].rack = newRack(s.Nodes)
			}
		}
	}
	for _, t := range r.present {
		p := &pilot{request: request{Site: t.Site, Hosts: t.Hosts, resources: t.resources}, number: len(r.pilots),
			state: coming, site: t.Site, speed: speedOf(t.Speed), free: true, patient: t.Keep, ended: never, cut: t.End}
		if t.End == 0 { // in both, 0 means without limit
			p.cut = never
		}
		if t.Keep == 0 {
			p.patient = never
		}
		p.resting = t.Ready - t.Idle
		r.pilots = append(r.pilots, p)
		r.push(t.Ready, joined, p, 0)
		if p.cut < never {
			r.push(r.lastBegun(p), expired, p, 0)
		}
	}
}

// patience returns how much longer than others a pilot stays without work: one that replaces another may start before
// the place of that one is free, and one that was submitted early before its work is due.
func (q request) patience() seconds {
	switch {
	case q.Follows != nil:
		return q.Start - q.Submit
	case q.Early:
		return q.Ready - q.Submit
	}
	return 0
}

// lastBegun returns when a present pilot leaves: at its end, but not before the tasks that it runs already have ended.
func (r *run) lastBegun(p *pilot) seconds {
	last := p.cut
	for _, b := range r.begun {
		if b.pilot == p.number {
			last = max(last, b.end)
		}
	}
	return last
}

// speedOf returns a speed, of which 0 means that it is not known to differ.
func speedOf(v float64) float64 {
	if v == 0 {
		return 1
	}
	return v
}

// capable reports whether a fresh pilot can run a task.
func (r *run) capable(p *pilot, i int) bool {
	need := r.hop + r.game.takes(p.site, p.speed, i, 1) + r.start
	return r.game.tasks[i].needs.fitIn(p.bounded()) && r.lifetime(p) >= need
}

// lifetime returns how long the workers of a pilot of the plan are there.
func (r *run) lifetime(p *pilot) seconds {
	s := r.at[p.number]
	return r.until(p) - s.Overhead
}

// until returns how long after the start of a pilot's job its workers leave. A pilot reserves a twentieth of its
// walltime, at least two seconds and at most a minute, for an orderly end; before that tasks are cut two seconds early,
// or a tenth of the time that is left if that is less.
func (r *run) until(p *pilot) seconds {
	if !r.reserve {
		return p.Walltime - r.at[p.number].Margin
	}
	left := p.Walltime - min(60*second, max(2*second, p.Walltime/20))
	overhead := r.at[p.number].Overhead
	return left - min(2*second, (left-overhead)/10)
}

// begin starts the job of a pilot whose wait is over, if its queue has room and runs pilots at that time. Otherwise it
// waits longer.
func (r *run) begin(p *pilot) {
	if p.state != queued {
		return // withdrawn, or started from the list of those blocked
	}
	s := r.at[p.number]
	q := r.queues[s]
	for _, c := range s.Closed { // a batch system starts no job that would reach into a maintenance
		if r.now < c.To && c.From < r.now+p.Walltime {
			r.push(c.To, due, p, 0)
			return
		}
	}
	if s.CPUs > 0 && q.cpus+p.Hosts*p.CPUs > s.CPUs {
		q.block(p)
		return
	}
	if q.rack != nil {
		switch q.rack.hold(p.number, p.Hosts, p.resources) {
		case impossible:
			if !p.late {
				p.late = true
				r.Violations++
			}
			q.block(p)
			return
		case undecided:
			r.Undecided++
		case packed:
		}
	}
	q.cpus += p.Hosts * p.CPUs
	p.state, p.started = coming, r.now
	p.cut = r.now + r.until(p)
	p.resting = r.now + s.Overhead
	r.push(r.now+s.Overhead, joined, p, 0)
	r.push(p.cut, expired, p, 0)
}

func (q *held) block(p *pilot) {
	if !slices.Contains(q.blocked, p) {
		q.blocked = append(q.blocked, p)
	}
}

// join adds a pilot's workers. If the pilot hedges another, or is hedged, the other one is withdrawn.
func (r *run) join(p *pilot) {
	if p.state != coming {
		return
	}
	p.state = serving
	for range p.Hosts {
		p.hosts = append(p.hosts, &host{pilot: p, free: p.bounded(), freed: -1, keptFor: -1})
	}
	if !p.free {
		p.rest(r)
		for _, other := range r.pilots {
			if p.hedges(other) || other.hedges(p) {
				r.withdraw(other)
			}
		}
		return
	}
	for _, b := range r.begun {
		if b.pilot == p.number {
			r.queue = slices.DeleteFunc(r.queue, func(i int) bool { return i == b.task })
			r.book(b.task, p.hosts[b.host], b.end, b.end)
		}
	}
	if p.patient < never {
		r.push(p.resting+p.patient, wake, nil, 0)
	}
}

func (p *pilot) hedges(other *pilot) bool { return p.Hedges != nil && *p.Hedges == other.number }

// rest notes that a pilot has no task from now on.
func (p *pilot) rest(r *run) {
	p.resting = r.now
	if p.patient < never {
		r.push(r.now+p.patient, wake, nil, 0)
	}
}

// withdraw ends a pilot that has not begun to serve.
func (r *run) withdraw(p *pilot) {
	switch p.state {
	case planned:
		p.state = gone
	case queued:
		p.state = gone
		q := r.queues[r.at[p.number]]
		q.live--
		q.blocked = slices.DeleteFunc(q.blocked, func(o *pilot) bool { return o == p })
	case coming:
		r.depart(p)
	}
}

// dismiss lets pilots leave that have had no task for too long. One that was requested for tasks that have not started
// stays as long as they can still come.
func (r *run) dismiss() {
	for _, p := range r.pilots {
		if p.state != serving || p.running > 0 || p.patient == never || r.now < p.resting+p.patient {
			continue
		}
		if until := p.started + p.MinStay; r.now < until {
			r.wakeFor(p, until)
			continue
		}
		if until := r.awaits(p); until >= r.now {
			r.wakeFor(p, until+second/1000)
		} else {
			r.depart(p)
		}
	}
}

// awaits returns the time until which one of a pilot's first tasks may still begin on it: while the forecast leaves it
// the time to run one of them. If none can, it returns a time that is over.
func (r *run) awaits(p *pilot) (until seconds) {
	until = -1
	if p.free || p.MinStay > 0 {
		return until
	}
	for _, i := range r.first[p.number] {
		if t := &r.tasks[i]; t.on != nil || t.done {
			continue
		}
		latest := p.cut - r.hop - r.game.takes(p.site, p.speed, i, 1) - r.start
		if ready, _ := r.forecastOf(i); max(r.now, ready) <= latest {
			until = max(until, latest)
		}
	}
	return until
}

// expire ends a pilot's workers at the end of their time. Tasks that still run are lost and begin again elsewhere.
func (r *run) expire(p *pilot) {
	if p.state != coming && p.state != serving {
		return
	}
	for _, h := range p.hosts {
		for _, i := range slices.Clone(h.tasks) {
			r.free(i)
			r.unstarted++
			r.Killed++
			r.enqueue(i)
		}
	}
	r.depart(p)
}

// depart makes a pilot take no more tasks and end its job.
func (r *run) depart(p *pilot) {
	for _, h := range p.hosts {
		if h.keptFor >= 0 {
			r.release(h.keptFor)
		}
	}
	p.state, p.ended = leaving, r.now+r.leave
	r.push(p.ended, over, p, 0)
}

// end ends a pilot's job. Pilots that waited for its room try again at this instant.
func (r *run) end(p *pilot) {
	p.state = gone
	if p.free {
		return
	}
	q := r.queues[r.at[p.number]]
	q.cpus -= p.Hosts * p.CPUs
	q.live--
	if q.rack != nil { // before the others try
		q.rack.release(p.number)
	}
	for _, other := range q.blocked {
		r.push(r.now, due, other, 0)
	}
	q.blocked = nil
}

// close ends the play. When the run is over, the plan is released: pilots that wait are cancelled and the others leave.
// By the clock nothing watches the run, so pilots stay until they have been idle for long enough.
func (r *run) close() {
	for _, p := range r.pilots {
		if p.state != coming && p.state != serving {
			continue
		}
		p.ended = r.now + r.leave
		if r.clock {
			p.ended = max(r.now, min(p.cut, p.resting+p.patient)) + r.leave
		}
	}
}
