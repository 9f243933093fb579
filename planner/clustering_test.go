package planner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// Where the next job starts two seconds after the one before, tasks of a second are put together; where it takes two
// milliseconds, or tasks take a minute, they are not.
func TestTasksAreClusteredWhereHopsCount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		runtime, hop time.Duration
		clustered    bool
	}{
		{time.Second, 2 * time.Second, true},
		{time.Second, 2 * time.Millisecond, false},
		{time.Minute, 2 * time.Second, false},
		{time.Second, 0, false},
	} {
		s := cloud()
		s.CPUs = 4
		problem := plan.Problem{Work: stages(t, tt.runtime, 1, 100, 1), Sites: []plan.Site{s},
			Cluster: plan.Cluster{Hop: tt.hop}}
		pl, err := Make(problem, plan.Goal{Objective: plan.Makespan}, Options{})
		if err != nil || !pl.Feasible {
			t.Fatal(pl, err)
		}
		if got := pl.Clustering.Groups > 0; got != tt.clustered {
			t.Errorf("tasks of %s, a hop of %s: %s", tt.runtime, tt.hop, pl.Clustering)
		}
		said := slices.ContainsFunc(pl.Reasons, func(r string) bool { return strings.Contains(r, "one by one they would") })
		if said != tt.clustered {
			t.Errorf("%s, because %q", pl.Clustering, pl.Reasons)
		}
		none := corral.Clustering{}
		alone, err := Make(problem, plan.Goal{Objective: plan.Makespan}, Options{Clustering: &none})
		if err != nil || alone.Clustering != none || alone.Makespan < pl.Makespan {
			t.Errorf("without clustering it takes %s, with %s %s; %v", alone.Makespan, pl.Clustering, pl.Makespan, err)
		}
	}
}

// Where one cpu has all tasks, each follows the one before as soon as a claim can be used again; one whose parent has just
// ended comes later, though its worker is the same.
func TestATaskThatWaitedFollowsSooner(t *testing.T) {
	t.Parallel()
	s := cloud()
	s.CPUs, s.Host.CPUs, s.Overhead = 1, 1, 0
	for _, tt := range []struct {
		widths []int
		want   time.Duration
	}{
		{[]int{10}, 10 * 10500 * time.Millisecond},
		{[]int{1, 1, 1}, 10500*time.Millisecond + 2*12*time.Second},
		{[]int{2, 1}, 2*10500*time.Millisecond + 12*time.Second},
	} {
		problem := plan.Problem{Work: stages(t, 10*time.Second, tt.widths...), Sites: []plan.Site{s},
			Cluster: plan.Cluster{Hop: 2 * time.Second, Reuse: 500 * time.Millisecond}}
		pl, err := Make(problem, plan.Goal{Objective: plan.Makespan}, Options{Clustering: &corral.Clustering{}})
		if err != nil || !pl.Feasible || time.Duration(pl.Makespan) != tt.want {
			t.Errorf("%v: %s, %v, want %s", tt.widths, pl.Makespan, err, tt.want)
		}
	}
}

// A job of several tasks is not longer than a walltime, though all of a level in one job would be the least trouble.
func TestJobsFitTheWalltime(t *testing.T) {
	t.Parallel()
	s := cloud()
	s.Walltime = time.Hour
	problem := plan.Problem{Work: stages(t, 10*time.Minute, 12), Sites: []plan.Site{s},
		Cluster: plan.Cluster{Hop: 10 * time.Minute}}
	pl, err := Make(problem, plan.Goal{Objective: plan.Cost}, Options{})
	if err != nil || !pl.Feasible || pl.Clustering.Groups < 4 && pl.Clustering.Groups > 0 {
		t.Errorf("%+v, %v", pl, err)
	}
}
