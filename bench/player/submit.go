package main

import (
	"fmt"
	"slices"
)

// dueAt returns when a pilot is to be submitted by the clock; ok is false as long as that depends on another pilot. A
// pilot that replaces another keeps its distance from the start of that one. If the other never started, it replaces
// nothing and is due at once.
func (r *run) dueAt(p *pilot) (at seconds, ok bool) {
	if p.Follows == nil {
		return p.Submit, true
	}
	before := r.pilots[*p.Follows]
	switch {
	case before.started < never:
		return before.started + max(0, p.Submit-before.Start), true
	case before.state == gone:
		return r.now, true
	}
	return 0, false
}

// submitDue submits the pilots whose time has come. Unless the clock decides, a later pilot also waits until its first
// tasks will be ready as soon after its submission as planned, or have been ready before.
func (r *run) submitDue() {
	for i, p := range r.pilots {
		if p.state != planned {
			continue
		}
		at, ok := r.dueAt(p)
		if !ok {
			continue
		}
		if later := p.Submit > 0 || p.Follows != nil; at <= r.now && later && !r.clock {
			if r.unstarted == 0 {
				continue // only running tasks are left
			}
			if at, ok = r.needed(p, r.lead[i]); !ok {
				continue
			}
		}
		switch s := r.at[i]; {
		case at > r.now:
			r.wakeFor(p, at)
		case s.Pilots == 0 || r.queues[s].live < s.Pilots:
			r.submit(p)
		}
	}
}

// wakeFor makes the play decide again at a time that matters to a pilot.
func (r *run) wakeFor(p *pilot, at seconds) {
	if p.woken != at {
		p.woken = at
		r.push(at, wake, nil, 0)
	}
}

// needed returns when the first of a pilot's first tasks is expected to be ready within the lead, which may be now, or
// a later time at which to look again; ok is false if time alone changes nothing. A pilot whose first tasks have
// started, or that the schedule gives none, is needed now.
func (r *run) needed(p *pilot, lead seconds) (at seconds, ok bool) {
	at, waiting := never, false
	for _, i := range r.first[p.number] {
		t := &r.tasks[i]
		if t.on != nil || t.done {
			continue
		}
		waiting = true
		ready, fixed := r.forecastOf(i)
		if ready-lead <= r.now+second { // corrald looks every second
			return r.now, true
		}
		if fixed-lead > r.now {
			at = min(at, fixed-lead)
		}
	}
	if !waiting {
		return r.now, true
	}
	return at, at < never
}

// force submits the next pilot if the run waits for nothing else: tasks are ready, none runs, no pilot is on its way,
// and nothing that is there can take them. Without this rule a run that is late could wait for a pilot whose first
// tasks wait for the same run.
func (r *run) force() {
	if r.clock || r.running > 0 || len(r.queue) == 0 {
		return
	}
	for _, p := range r.pilots {
		if p.state == queued || p.state == coming {
			return
		}
	}
	for i, p := range r.pilots {
		if p.state != planned {
			continue
		}
		at, ok := r.dueAt(p)
		if !ok {
			at = p.Submit // the pilot that it should replace may never be submitted
		}
		if at > r.now {
			continue
		}
		s := r.at[i]
		useful := slices.ContainsFunc(r.queue, func(t int) bool { return r.capable(p, t) })
		if useful && (s.Pilots == 0 || r.queues[s].live < s.Pilots) {
			r.Forced++
			r.submit(p)
			return
		}
	}
}

// submit submits a pilot, unless its site would refuse it.
func (r *run) submit(p *pilot) {
	s := r.at[p.number]
	if p.why = s.refuses(p.request); p.why != "" {
		p.state = gone
		if s.overNodes(p.request) {
			r.Violations++
		}
		return
	}
	r.submits++
	p.state, p.submitted, p.turn = queued, r.now, r.submits
	r.queues[s].live++
	wait := p.Start - p.Submit // as assumed, whenever it is submitted
	if s.Wait != nil {
		wait = *s.Wait
	}
	if r.waits != nil && s.Wait == nil {
		wait = s.quantile(p.Hosts*p.CPUs, p.Walltime, r.waits[p.number], wait)
	}
	r.push(r.now+wait.times(r.factor), due, p, 0)
}

// quantile returns the wait of pilots of this size that the given share does not exceed: the first entry with enough
// cpus and walltime counts, else the last one with as many cpus.
func (s *site) quantile(cpus int, walltime seconds, share float64, otherwise seconds) seconds {
	if len(s.Waits) == 0 {
		return otherwise
	}
	k := slices.IndexFunc(s.Waits, func(w shapeWaits) bool { return w.CPUs >= cpus })
	if k < 0 {
		k = slices.IndexFunc(s.Waits, func(w shapeWaits) bool { return w.CPUs == s.Waits[len(s.Waits)-1].CPUs })
	}
	for k+1 < len(s.Waits) && s.Waits[k+1].CPUs == s.Waits[k].CPUs && s.Waits[k].Walltime < walltime {
		k++
	}
	all := s.Waits[k].Waits
	if len(all) == 0 {
		return s.Waits[k].Planned
	}
	x := share * float64(len(all)-1) // the quantiles are at equal distances; between two it is linear
	low := min(int(x), max(0, len(all)-2))
	high := min(low+1, len(all)-1)
	return all[low] + (all[high] - all[low]).times(x-float64(low))
}

// overNodes reports whether a bound proves that a pilot's hosts do not fit the site's nodes, even if they are empty.
func (s *site) overNodes(q request) bool {
	return len(s.Nodes) > 0 && tooMany(newRack(s.Nodes).types, slices.Repeat([]resources{q.resources}, q.Hosts))
}

// refuses returns why a site would never run a pilot, or "".
func (s *site) refuses(q request) string {
	over := func(n, limit int) bool { return limit > 0 && n > limit }
	switch {
	case s.Walltime > 0 && q.Walltime > s.Walltime:
		return fmt.Sprintf("its walltime of %s is over the limit of %s", q.Walltime, s.Walltime)
	case over(q.Hosts, s.Hosts), over(q.Hosts*q.CPUs, s.CPUs):
		return fmt.Sprintf("%d hosts are more than the site allows", q.Hosts)
	case s.overNodes(q):
		return fmt.Sprintf("%d hosts of %s do not fit the site's nodes", q.Hosts, q.resources)
	case len(s.Nodes) == 0 && (over(q.CPUs, s.HostCPUs) || over(q.MemoryMiB, s.MemoryMiB) || q.GPUs > s.GPUs):
		return fmt.Sprintf("the site has no host with %s", q.resources)
	}
	return ""
}
