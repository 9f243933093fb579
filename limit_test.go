package corral_test

import (
	"testing"

	"github.com/corral-pilot/corral"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	var l corral.Load
	for _, kind := range []corral.JobKind{corral.SetupJob, corral.PilotJob, corral.CleanupJob} {
		for _, state := range corral.JobStates {
			l = l.Add(&corral.Job{Kind: kind, State: state})
		}
	}
	if want := (corral.Load{Queued: 3, Running: 1}); l != want {
		t.Errorf("of one job of each kind in each state: %+v, want %+v", l, want)
	}
}

func TestFull(t *testing.T) {
	t.Parallel()
	limits := func(queued, running int) corral.Site {
		return corral.Site{Name: "hpc", Limits: corral.SiteLimits{MaxQueued: queued, MaxRunning: running}}
	}
	probed := func(s corral.Site, submit int) corral.Site {
		s.Facts = &corral.SiteFacts{MaxSubmit: submit, MaxJobs: 1}
		return s
	}
	for _, tt := range []struct {
		name string
		site corral.Site
		load corral.Load
		want string
	}{
		{"no limit", limits(0, 0), corral.Load{Queued: 1000, Running: 1000}, ""},
		{"room in the queue", limits(3, 0), corral.Load{Queued: 2, Running: 1000}, ""},
		{"the queue is full", limits(3, 0), corral.Load{Queued: 3}, "limit max_queued of site hpc: 3 of 3 attempts wait"},
		{"the limit was lowered", limits(3, 0), corral.Load{Queued: 5}, "limit max_queued of site hpc: 5 of 3 attempts wait"},
		{"room to run", limits(0, 3), corral.Load{Queued: 1, Running: 1}, ""},
		{"all waiting attempts may start", limits(0, 3), corral.Load{Queued: 2, Running: 1}, "limit max_running of site hpc: 3 of 3 attempts wait or run"},
		{"a probe found no limit", probed(limits(0, 0), 0), corral.Load{Queued: 50}, ""},
		{"the batch system accepts no more", probed(limits(0, 0), 4), corral.Load{Queued: 3, Running: 1}, "limit max_submit of site hpc: 4 of 4 jobs wait or run"},
		{"the batch system queues jobs that it does not run yet", probed(limits(0, 0), 4), corral.Load{Queued: 1, Running: 1}, ""},
		{"the administrator allows less", probed(limits(0, 2), 4), corral.Load{Running: 2}, "limit max_running of site hpc: 2 of 2 attempts wait or run"},
	} {
		if got := tt.site.Full(tt.load); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
