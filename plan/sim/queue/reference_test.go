package queue_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/sim/queue"
)

// easyReference simulates jobs with EASY backfilling as its authors describe it, with a shadow time and extra
// processors (Mu'alem and Feitelson 2001, figure 1; Lifka 1995). It uses no profile and shares only the input type with
// the package; it is simple and slow.
func easyReference(processors int, jobs []queue.Job) []time.Duration {
	type running struct {
		job       int
		planned   time.Duration // its end according to the requested time
		ends      time.Duration
		occupying int
	}
	const never = time.Duration(1) << 62
	starts := make([]time.Duration, len(jobs))
	var runs []running
	var queued []int
	free, arrived := processors, 0
	for {
		now := never
		if arrived < len(jobs) {
			now = jobs[arrived].Submit
		}
		for _, r := range runs {
			now = min(now, r.ends)
		}
		if now == never {
			return starts
		}
		runs = slices.DeleteFunc(runs, func(r running) bool {
			if r.ends <= now {
				free += r.occupying
			}
			return r.ends <= now
		})
		for ; arrived < len(jobs) && jobs[arrived].Submit <= now; arrived++ {
			queued = append(queued, arrived)
		}
		start := func(i int) {
			j := jobs[i]
			starts[i], free = now, free-j.Processors
			runs = append(runs, running{i, now + j.Requested, now + min(j.Runtime, j.Requested), j.Processors})
		}
		for len(queued) > 0 && jobs[queued[0]].Processors <= free {
			start(queued[0])
			queued = queued[1:]
		}
		if len(queued) == 0 {
			continue
		}
		slices.SortFunc(runs, func(a, b running) int { return cmp.Compare(a.planned, b.planned) })
		shadow, extra := never, free
		for i := 0; i < len(runs) && (extra < jobs[queued[0]].Processors || runs[i].planned == shadow); i++ {
			shadow, extra = runs[i].planned, extra+runs[i].occupying
		}
		extra -= jobs[queued[0]].Processors
		waiting := queued[:1:1]
		for _, i := range queued[1:] {
			switch j := jobs[i]; {
			case j.Processors > free || now+j.Requested > shadow && j.Processors > extra:
				waiting = append(waiting, i)
			case now+j.Requested > shadow:
				extra -= j.Processors
				fallthrough
			default:
				start(i)
			}
		}
		queued = waiting
	}
}
