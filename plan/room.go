package plan

// The room of a queue is the capacity that no job in the queue holds or is planned to hold. A pilot that fits into it
// from now on starts at once, by backfilling. A pilot that fits later starts then, provided that it is queued before
// other jobs could take its place. There is no guarantee: jobs end early, and jobs with a higher priority arrive.

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/slot"
)

// A Step is the number of free cpus of a queue from an instant until the next step.
type Step struct {
	At   corral.Seconds `json:"at_s"`
	CPUs int            `json:"cpus"`
}

// Line sets the submit times of the pilots that rely on the room of a queue. Each is submitted as early as possible
// without starting earlier than planned. None is submitted before a pilot that starts earlier, because it would take
// that pilot's place, nor while the site has its maximum number of pilots, nor before the given time.
func Line(sites []Site, pilots []Pilot, notBefore corral.Seconds) {
	for i := range sites {
		site := &sites[i]
		if site.Room == nil {
			continue
		}
		room, last := site.Room.Clone(), notBefore
		var line []Pilot
		for _, k := range byStart(pilots) {
			q := &pilots[k]
			if q.Site != site.Name || q.Queue != site.Queue {
				continue
			}
			start, walltime, n := time.Duration(q.Start), time.Duration(q.Walltime), q.HeldCPUs()
			if room.Least(start, start+walltime) < n {
				continue // the pilot does not rely on the room
			}
			last = max(last, corral.Seconds(room.Arrival(start, walltime, n)))
			last = min(q.Start, whenFewer(line, site.Pilots, last))
			q.Submit, q.Early = last, last < q.Start
			room.Take(start, start+walltime, n)
			line = append(line, *q)
		}
	}
}

// whenFewer returns the first instant from at on when the number of pilots that are queued or running is below most.
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

// byStart returns the indices of the pilots in the order of their starts.
func byStart(pilots []Pilot) []int {
	order := make([]int, len(pilots))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(pilots[a].Start, pilots[b].Start) })
	return order
}

// roomOf records the room of a queue as far as the plan depends on it: at most as many cpus as the plan's pilots hold
// there in total, until the end of their last walltime.
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

// profile decodes the output of roomOf.
func profile(steps []Step) *slot.Profile {
	if len(steps) == 0 {
		return nil
	}
	most := 0
	for _, s := range steps {
		most = max(most, s.CPUs)
	}
	p := slot.NewProfile(most, time.Duration(steps[0].At))
	for i, s := range steps {
		end := slot.Forever
		if i+1 < len(steps) {
			end = time.Duration(steps[i+1].At)
		}
		p.Take(time.Duration(s.At), end, most-s.CPUs)
	}
	return p
}

// checkRoom checks the steps of a room.
func checkRoom(steps []Step) error {
	for i, s := range steps {
		if s.CPUs < 0 || s.At < 0 || i > 0 && s.At <= steps[i-1].At {
			return errors.New("room: the steps are negative or not in ascending order")
		}
	}
	return nil
}
