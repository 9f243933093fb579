package dispatch

import (
	"log/slog"
	"testing"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// The terms for workers are as configured; unset values are derived from those that are set.
func TestTerms(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		config Config
		want   wire.Terms
	}{
		{Config{}, wire.Terms{Lease: 15 * time.Second, Heartbeat: 3 * time.Second}},
		{Config{Lease: time.Minute}, wire.Terms{Lease: time.Minute, Heartbeat: 12 * time.Second}},
		{Config{Lease: 9, Heartbeat: time.Second}, wire.Terms{Lease: 9, Heartbeat: time.Second}},
	} {
		if got := tt.config.Terms(); got != tt.want {
			t.Errorf("Terms of %+v = %+v, want %+v", tt.config, got, tt.want)
		}
	}
}

// Jobs are discarded if their run is not yet attached or already detached.
func TestJobsAreKeptWhileTheirRunIsAttached(t *testing.T) {
	t.Parallel()
	d := New(slog.New(slog.DiscardHandler), Config{})
	defer d.Close()
	jobs := []execution.Job{{Run: 1, Seq: 1, CPUs: 1}, {Run: 1, Seq: 2, CPUs: 1}}
	for _, attached := range []bool{false, true} {
		if attached {
			d.Attach(1, nil)
		}
		d.Submit(jobs)
		if queued, held := load(d); (queued == 2) != attached || held != 0 {
			t.Errorf("attached %v: %d jobs queued, %d held", attached, queued, held)
		}
	}
	d.Detach(1)
	if queued, _ := load(d); queued != 0 || len(d.Workers()) != 0 {
		t.Errorf("after Detach %d jobs are queued", queued)
	}
}

// load returns the numbers of queued jobs and of jobs held by workers.
func load(d *Dispatcher) (queued, held int) {
	waiting, held := d.Load()
	for _, c := range waiting {
		queued += c.Jobs
	}
	return queued, held
}
