package plan

// The room of a queue is what nobody who is in it holds, or is going to hold. A pilot for which there is room from now
// on starts at once, by backfilling; one for which there is room later starts then, if it is in line by the time at
// which others could take its place. Nothing is promised: jobs end early, and jobs come that go first.

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/availability"
)

// A Step is how many cpus of a queue nobody else holds, or is going to, from an instant on until the next step.
type Step struct {
	At   corral.Seconds `json:"at_s"`
	CPUs int            `json:"cpus"`
}

// Line has pilots that are in the room of a queue join its line as late as is right: had they come earlier they would
// start earlier. None comes before one that is to start before it, since it would take that one's place, nor while the
// site has as many pilots as it takes.
func Line(sites []Site, pilots []Pilot) {
	for i := range sites {
		site := &sites[i]
		if site.Room == nil {
			continue
		}
		room, last := site.Room.Clone(), corral.Seconds(0)
		var line []Pilot
		for _, k := range byStart(pilots) {
			q := &pilots[k]
			if q.Site != site.Name || q.Queue != site.Queue {
				continue
			}
			start, walltime, n := time.Duration(q.Start), time.Duration(q.Walltime), q.HeldCPUs()
			if room.Least(start, start+walltime) < n {
				continue // it does not rely on room
			}
			last = max(last, corral.Seconds(room.Arrival(start, walltime, n)))
			last = min(q.Start, whenFewer(line, site.Pilots, last))
			q.Submit, q.Early = last, last < q.Start
			room.Take(start, start+walltime, n)
			line = append(line, *q)
		}
	}
}

// whenFewer is from when on, an instant or later, fewer than so many of some pilots are in line or there.
func whenFewer(pilots []Pilot, most int, at corral.Seconds) corral.Seconds {
	var ends []corral.Seconds
	for _, q := range pilots {
		if q.End > at {
			ends = append(ends, q.End)
		}
	}
	if len(ends) < most {
		return at
	}
	slices.Sort(ends)
	return ends[len(ends)-most]
}

// byStart are the indices of pilots in the order of their starts.
func byStart(pilots []Pilot) []int {
	order := make([]int, len(pilots))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(pilots[a].Start, pilots[b].Start) })
	return order
}

// roomOf writes down what room a queue has, as far as the plan has to do with it: no more cpus than its pilots have
// there together, until the last of their walltimes is over.
func roomOf(s *Site, pl *Plan) (steps []Step) {
	if s.Room == nil {
		return nil
	}
	most, end := 0, corral.Seconds(0)
	for _, q := range pl.Pilots {
		if q.Site == s.Name && q.Queue == s.Queue {
			most, end = most+q.HeldCPUs(), max(end, q.Start+q.Walltime)
		}
	}
	for at, free := range s.Room.AtMost(most).Steps() {
		if len(steps) == 0 || corral.Seconds(at) < end {
			steps = append(steps, Step{corral.Seconds(at), free})
		}
	}
	return steps
}

// profile reads what roomOf wrote.
func profile(steps []Step) *availability.Profile {
	if len(steps) == 0 {
		return nil
	}
	most := 0
	for _, s := range steps {
		most = max(most, s.CPUs)
	}
	p := availability.New(most, time.Duration(steps[0].At))
	for i, s := range steps {
		end := availability.Forever
		if i+1 < len(steps) {
			end = time.Duration(steps[i+1].At)
		}
		p.Take(time.Duration(s.At), end, most-s.CPUs)
	}
	return p
}

// checkRoom says what makes no sense of a room.
func checkRoom(steps []Step) error {
	for i, s := range steps {
		if s.CPUs < 0 || s.At < 0 || i > 0 && s.At <= steps[i-1].At {
			return errors.New("room: its steps are not in order, or one is below 0")
		}
	}
	return nil
}
