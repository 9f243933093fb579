package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
)

// BenchmarkApply measures one change in a world with the given number of glideins, over whole lives of glideins with
// two attempts: each glidein is created, submitted, moved, works, ends, and makes room for another.
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{100, 1e3, 1e4, 1e5} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := readyRig(b, corral.Site{})
			lives := make([][]Change, n) // remaining changes of each place in the world
			step := func(place int) {
				r.now = r.now.Add(time.Millisecond)
				if len(lives[place]) == 0 {
					g := forever()
					g.Resubmit.Mode, g.Resubmit.Limit = "times", 1
					r.must(CreateGlidein{Glidein: g})
					lives[place] = lifeOf(r.lastGlidein)
					return
				}
				c := lives[place][0]
				lives[place] = lives[place][1:]
				r.must(ofLast(c, lives, place, r))
			}
			for place := range n {
				for range place % 12 { // at every stage of life
					step(place)
				}
				if place%12 == 0 {
					step(place)
				}
			}
			b.ReportAllocs()
			place := 0
			for b.Loop() {
				place = (place + 7919) % n
				step(place)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "changes/s")
		})
	}
}

// lifeOf returns the changes of a glidein after its creation. The job of a change is set when it is applied.
func lifeOf(g corral.GlideinID) []Change {
	attempt := []Change{
		Submit{Kind: corral.PilotJob, Glidein: g},
		MoveJob{Event: corral.JobEvent{Move: corral.JobSubmit}},
		MoveJob{Event: corral.JobEvent{Move: corral.JobStart}},
		NoteWorkers{Workers: 1},
		MoveJob{Event: corral.JobEvent{Move: corral.JobEnd, Outcome: corral.OutcomeExpired}},
	}
	return append(attempt[:len(attempt):len(attempt)], attempt...)
}

// ofLast sets the job of the changes that follow a submission.
func ofLast(c Change, lives [][]Change, place int, r *rig) Change {
	if _, submits := c.(Submit); submits {
		for i, next := range lives[place] {
			switch next := next.(type) {
			case MoveJob:
				next.Job = r.lastJob + 1
				lives[place][i] = next
			case NoteWorkers:
				next.Job = r.lastJob + 1
				lives[place][i] = next
			}
		}
	}
	return c
}
