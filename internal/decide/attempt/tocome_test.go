package attempt

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/resubmit"
)

// A worker must have ended a task before it leaves, and needs half a second to start it.
func TestLongest(t *testing.T) {
	t.Parallel()
	for endsIn, want := range map[time.Duration]time.Duration{
		10 * time.Second: 8500 * time.Millisecond, // a tenth of the time is for leaving
		time.Hour:        time.Hour - 2500*time.Millisecond,
		0:                -500 * time.Millisecond,
	} {
		if got := Longest(endsIn); got != want {
			t.Errorf("a worker that leaves after %s takes tasks of %s, want %s", endsIn, got, want)
		}
	}
}

// A run may wait for workers that are still expected, and its tasks may be as long as these workers will stay.
func TestToCome(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const walltime = 10 * time.Minute
	never, forever := resubmit.Policy{}, resubmit.Policy{Mode: resubmit.Forever}
	once := resubmit.Policy{Mode: resubmit.Times, Limit: 1}
	past := resubmit.Policy{Mode: resubmit.Until, Deadline: now.Add(-time.Minute)}
	over := func(id corral.JobID, o corral.Outcome) corral.Job {
		return corral.Job{ID: id, State: corral.JobEnded, Outcome: o, EndedAt: now.Add(-time.Minute)}
	}
	queued := func(id corral.JobID) corral.Job { return corral.Job{ID: id, State: corral.JobQueued} }
	running := func(id corral.JobID) corral.Job {
		return corral.Job{ID: id, State: corral.JobRunning, StartedAt: now.Add(-4 * time.Minute)}
	}
	// The time left for workers suffices to start them: they use a tenth of it to leave.
	justStarts := running(1)
	justStarts.StartedAt = now.Add(-walltime + jobfiles.Reserve(walltime) + 1666666666*time.Nanosecond)
	whole := map[corral.JobID]int{1: 2}
	for _, tt := range []struct {
		name     string
		policy   resubmit.Policy
		attempts []corral.Job
		present  map[corral.JobID]int
		want     time.Duration // how long the worker stays; 0: no worker is expected
	}{
		{"the first attempt is to come", never, nil, nil, walltime},
		{"it waits in the queue", never, []corral.Job{queued(1)}, nil, walltime},
		{"it runs, a worker is missing", never, []corral.Job{running(1)}, map[corral.JobID]int{1: 1}, walltime - 4*time.Minute},
		{"it runs, too late for any task", never, []corral.Job{justStarts}, nil, 0},
		{"it runs, all workers are there", never, []corral.Job{running(1)}, whole, 0},
		{"all are there, another may follow", forever, []corral.Job{running(1)}, whole, walltime},
		{"all are there, one may follow", once, []corral.Job{running(1)}, whole, walltime},
		{"all are there, that was the last", once, []corral.Job{over(2, corral.OutcomeExpired), running(1)}, whole, 0},
		{"all are there, the time for others is over", past, []corral.Job{running(1)}, whole, 0},
		{"the last of two that overlap waits", once, []corral.Job{running(1), queued(2)}, whole, walltime},
		{"it was lost, a retry is left", resubmit.Policy{Retries: 1}, []corral.Job{over(1, corral.OutcomeLost)}, nil, walltime},
	} {
		g := corral.Glidein{ID: 7, State: corral.GlideinWaiting,
			Shape:    corral.Shape{Hosts: 2, CPUs: 1, Walltime: corral.Seconds(walltime)},
			Resubmit: tt.policy, Attempts: tt.attempts}
		got, ok := ToCome(&g, tt.present, now)
		if want := Longest(tt.want-jobfiles.Reserve(walltime)) - startUp; ok != (tt.want > 0) || ok && got != want {
			t.Errorf("%s: %s, %t; want %s", tt.name, got, ok, want)
		}
		for _, gone := range []func(*corral.Glidein){
			func(g *corral.Glidein) { g.Asked = corral.AskDrain },
			func(g *corral.Glidein) { g.State = corral.GlideinFinished },
		} {
			g := g
			gone(&g)
			if _, ok := ToCome(&g, tt.present, now); ok {
				t.Errorf("%s: a worker is expected of a glidein that is leaving", tt.name)
			}
		}
	}
}
