package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// A stair is a hold that becomes a host of a pilot.
type stair struct {
	line, hold int
	plan.Span            // of the pilot's job: from its start, before its workers are ready, until they have left
	place      plan.Span // the interval into which the pilot's walltime has to fit
}

// pilots makes the pilots for the holds of a schedule, and maps each line and hold to a pilot and one of its hosts.
// Hosts with the same site and shape that start and end together become one pilot, up to the site's maximum of hosts.
// slack is the maximum difference between their times: a larger slack yields fewer pilots, which are held for longer in
// total. Unless the site limits the number of pilots, a pilot has at most 1/parts of the hosts.
func (s *schedule) pilots(slack time.Duration, parts int) (all []plan.Pilot, at map[[2]int][2]int) {
	var stairs []stair
	for i, l := range s.lines {
		if l.present > 0 {
			continue
		}
		for k, h := range l.holds {
			span := plan.Span{From: h.From - l.site.Overhead, To: h.To + l.leave}
			stairs = append(stairs, stair{i, k, span, l.place(k)})
		}
	}
	slices.SortFunc(stairs, func(a, b stair) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To), cmp.Compare(a.line, b.line))
	})
	most := plan.Unlimited
	if parts > 0 {
		most = (len(s.lines) + parts - 1) / parts
	}
	at = make(map[[2]int][2]int, len(stairs))
	taken := make([]bool, len(stairs))
	for i, first := range stairs {
		if taken[i] {
			continue
		}
		l := s.lines[first.line]
		members, span, place := []stair{first}, first.Span, first.place
		hosts := l.site.Hosts
		if l.site.Pilots >= plan.Unlimited {
			hosts = min(hosts, most)
		}
		for j := i + 1; j < len(stairs) && stairs[j].From-first.From <= slack && len(members) < hosts; j++ {
			other := s.lines[stairs[j].line]
			if taken[j] || other.site != l.site || other.host != l.host || other.slot != l.slot {
				continue
			}
			if d := stairs[j].To - first.To; max(d, -d) > slack {
				continue
			}
			wider := plan.Span{From: min(span.From, stairs[j].From), To: max(span.To, stairs[j].To)}
			within := plan.Span{From: max(place.From, stairs[j].place.From), To: min(place.To, stairs[j].place.To)}
			if wider.To-wider.From+l.site.Margin > min(l.site.Walltime, within.To-wider.From) ||
				wider.From < within.From || slices.ContainsFunc(l.site.Closed, wider.Overlaps) {
				continue
			}
			taken[j], span, place = true, wider, within
			members = append(members, stairs[j])
		}
		for host, m := range members {
			at[[2]int{m.line, m.hold}] = [2]int{len(all), host}
		}
		all = append(all, s.pilot(l, len(members), span, place.To))
	}
	s.chain(all, at)
	for i, l := range s.lines {
		if l.present > 0 {
			at[[2]int{i, 0}] = [2]int{len(all) + l.present - 1, l.number}
		}
	}
	return all, at
}

// chain links each pilot to the pilot that it replaces: the two share all their lines, and on each line the previous
// hold ended because of the walltime, not because of a pause. This is the case if the later pilot has to start before
// the earlier pilot has left.
func (s *schedule) chain(all []plan.Pilot, at map[[2]int][2]int) {
	before := make([]map[int]int, len(all)) // :: previous pilot → number of lines
	for i, l := range s.lines {
		for k := 1; k < len(l.holds) && l.present == 0; k++ {
			earlier, later := at[[2]int{i, k - 1}][0], at[[2]int{i, k}][0]
			if before[later] == nil {
				before[later] = map[int]int{}
			}
			before[later][earlier]++
		}
	}
	for later, lines := range before {
		q := &all[later]
		for earlier, n := range lines {
			p := all[earlier]
			if n == q.Hosts && n == p.Hosts && earlier < later && q.Submit >= p.Start && q.Start < p.End {
				q.Follows = &earlier
			}
		}
	}
}

// place returns the interval into which the walltime of a hold's pilot has to fit. In a slot the interval ends when the
// next pilot starts.
func (l *line) place(hold int) plan.Span {
	if l.slot == nil {
		return plan.Span{To: plan.Unbounded}
	}
	p := l.slot.Span
	if hold > 0 {
		p.From = l.holds[hold].From - l.site.Overhead
	}
	if hold+1 < len(l.holds) {
		p.To = l.holds[hold+1].From - l.site.Overhead
	}
	return p
}

// pilot returns a pilot with a line's site and shape.
func (s *schedule) pilot(l *line, hosts int, held plan.Span, until time.Duration) plan.Pilot {
	need := held.To - held.From + l.spare(held.To-held.From) + l.site.Margin
	walltime := plan.RoundWalltime(need)
	walltime = min(walltime, l.site.Walltime, until-held.From)
	for _, c := range l.site.Closed { // a pilot starts only if its walltime ends before the maintenance
		if c.From > held.From {
			walltime = min(walltime, c.From-held.From)
		}
	}
	wait := l.site.Wait(plan.Shape{Hosts: hosts, Host: l.host, Walltime: walltime})
	if l.slot != nil && l.site.Room != nil {
		wait = 0 // its submit time is set when all pilots are known, see plan.Line
	}
	q := plan.Pilot{
		Site: l.site.Name, Queue: l.site.Queue,
		Shape: corral.Shape{Hosts: hosts, CPUs: l.host.CPUs, MemoryMiB: known(l.host.MemoryMiB),
			GPUs: known(l.host.GPUs), Walltime: corral.Seconds(walltime)},
		Submit: corral.Seconds(held.From - wait), Start: corral.Seconds(held.From),
		Ready: corral.Seconds(held.From + l.site.Overhead), End: corral.Seconds(held.To),
	}
	if l.static {
		q.MinStay = q.Walltime
	}
	return q
}

// spare returns the additional walltime of a pilot.
func (l *line) spare(held time.Duration) time.Duration {
	return time.Duration(l.reserve * float64(held))
}

// known maps an unlimited number to 0, which JSON omits.
func known(n int) int {
	if n >= plan.Unlimited {
		return 0
	}
	return n
}
