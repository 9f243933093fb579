package main

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/dag"
)

// Montage of 206 tasks: on any number of processors pilots gain more task by task than with groups of a level, and are
// always close to the list schedule.
func TestPilotsGainMostWhereJobsAreShort(t *testing.T) {
	t.Parallel()
	wf, err := montage(40, 120, 1)
	if err != nil {
		t.Fatal(err)
	}
	var s study
	g, err := s.montages([]*workflow.Workflow{wf}, 1, setting{site: abe, system: pbs})
	if err != nil {
		t.Fatal(err)
	}
	plain, clustered := mean(g.plain), mean(g.clustered)
	if plain < 30 || plain > 60 || clustered > plain-5 || g.below > 1 {
		t.Errorf("task by task %.1f %% faster, by level %.1f %%; %.1f %% below a list schedule", plain, clustered, g.below)
	}
	for _, c := range s.comparisons {
		if c.pilots >= c.provisioned || c.provisioned >= c.direct || over(c.pilots, c.schedule) > 10 {
			t.Errorf("%+v", c)
		}
	}
}

// Fewer starts per second leave more of the cores idle.
func TestSubmitHostLimitsProduction(t *testing.T) {
	t.Parallel()
	var s study
	if err := s.cyberShake(1000); err != nil {
		t.Fatal(err)
	}
	if p := s.productions; len(p) != 3 || p[0].used <= p[1].used || p[1].used <= p[2].used || p[2].used > 0.3 {
		t.Errorf("%+v", p)
	}
}

// A diamond of one-minute tasks, job by job: each task is queued ten seconds after it becomes ready, and the second of
// two simultaneous ones three seconds later. On one processor they wait for each other, and for the next poll.
func TestJobByJob(t *testing.T) {
	t.Parallel()
	g, err := dag.New(4, [][2]int{{0, 1}, {0, 2}, {1, 3}, {2, 3}})
	if err != nil {
		t.Fatal(err)
	}
	const m = time.Minute
	times := []time.Duration{m, m, m, m}
	for _, tt := range []struct {
		name   string
		m      queue.Machine
		groups [][]int
		want   time.Duration
	}{
		{"two processors", queue.Machine{Processors: 2}, nil, 3*m + 33*time.Second},
		{"one", queue.Machine{Processors: 1}, nil, 4*m + 30*time.Second},
		{"one job of a user at once", queue.Machine{Processors: 2, MaxUserRun: 1}, nil, 4*m + 30*time.Second},
		{"looks each minute", queue.Machine{Processors: 2, Interval: m}, nil, 6 * m},
		{"by level in one group", queue.Machine{Processors: 2}, dag.ByLevel(g, 1, nil), 4*m + 30*time.Second},
	} {
		tt.m.Policy = queue.FCFS
		to := grid{way: 10 * time.Second, gap: 3 * time.Second, queue: queue.New(tt.m, nil)}
		got, err := to.run(jobs(g, times, tt.groups))
		if err != nil || got != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
	narrow := queue.New(queue.Machine{Processors: 2, Policy: queue.FCFS, Walltime: time.Second}, nil)
	if _, err := (grid{queue: narrow}).run(jobs(g, times, nil)); err == nil {
		t.Error("jobs beyond the walltime are not refused")
	}
}
