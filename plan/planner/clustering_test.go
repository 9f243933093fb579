package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow/clustering"
	"github.com/corral-pilot/corral/workflow/dag"
)

// If the next job starts two seconds after the previous one, tasks of a second are clustered; if the next job starts
// after two milliseconds, or if tasks take a minute, they are not clustered.
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
		if got := pl.Clustering.Kind != clustering.None; got != tt.clustered {
			t.Errorf("tasks of %s, a hop of %s: %s", tt.runtime, tt.hop, pl.Clustering)
		}
		said := slices.ContainsFunc(pl.Reasons, func(r string) bool { return strings.Contains(r, "as separate jobs they would") })
		if said != tt.clustered {
			t.Errorf("%s, because %q", pl.Clustering, pl.Reasons)
		}
		none := clustering.Rule{}
		alone, err := Make(problem, plan.Goal{Objective: plan.Makespan}, Options{Clustering: &none})
		if err != nil || alone.Clustering != none || alone.Makespan < pl.Makespan {
			t.Errorf("without clustering it takes %s, with %s %s; %v", alone.Makespan, pl.Clustering, pl.Makespan, err)
		}
	}
}

// If one cpu runs all tasks, each follows the previous one as soon as its claim can be reused; a task whose parent has
// just ended starts later, even on the same worker.
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
		pl, err := Make(problem, plan.Goal{Objective: plan.Makespan}, Options{Clustering: &clustering.Rule{}})
		if err != nil || !pl.Feasible || time.Duration(pl.Makespan) != tt.want {
			t.Errorf("%v: %s, %v, want %s", tt.widths, pl.Makespan, err, tt.want)
		}
	}
}

// A job of several tasks does not exceed a walltime, even though a single job per level would have the least overhead.
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

// F84: Epigenome's wide level (E2.5 of Juve 2012), 512 tasks of 2 h 38 min on pilots of 24 hours. In 30 groups a job
// would take 47 hours, which is refused with a feasible suggestion. In 60 groups a job takes 23 h 42 min, and 30 cpus
// run two groups each. Groups stay within a level, and a job waits only for the jobs that its tasks depend on.
func TestGroupsThatNoWalltimeHoldsAreRefused(t *testing.T) {
	t.Parallel()
	s := cloud()
	s.Walltime, s.CPUs = 24*time.Hour, 30
	w := stages(t, 158*time.Minute, 1, 512, 1)
	problem := plan.Problem{Work: w, Sites: []plan.Site{s}, Cluster: plan.Cluster{Hop: 2 * time.Second}}
	for _, tt := range []struct {
		groups int
		want   string // reason of a refusal; empty: it is accepted
	}{
		{30, "with --clustering horizontal=30 a job of 18 tasks takes 47h24m0s, but no pilot has more than " +
			"24h0m0s for it; --clustering horizontal=57 is within reach"},
		{56, "with --clustering horizontal=56 a job of 10 tasks takes 26h20m0s, but no pilot has more than " +
			"24h0m0s for it; --clustering horizontal=57 is within reach"},
		{57, ""}, {60, ""}, {512, ""},
	} {
		pl, err := Make(problem, plan.Goal{Objective: plan.Makespan},
			Options{Clustering: new(clustering.Levels(tt.groups))})
		if err != nil {
			t.Fatal(err)
		}
		if tt.want != "" {
			if pl.Feasible || len(pl.Pilots) > 0 || pl.Reasons[0] != tt.want {
				t.Errorf("%d groups: %q, want %q", tt.groups, pl.Reasons, tt.want)
			}
			continue
		}
		if !pl.Feasible || pl.Clustering.Groups != tt.groups {
			t.Errorf("%d groups: %v, %s", tt.groups, pl.Reasons, pl.Clustering)
		}
		for _, q := range pl.Pilots {
			if time.Duration(q.Walltime) > s.Walltime {
				t.Errorf("%d groups: a walltime of %s", tt.groups, q.Walltime)
			}
		}
	}
	// If the planner chooses, it obeys the walltimes, even though one job would have the least overhead.
	problem.Cluster.Hop = time.Hour
	pl, err := Make(problem, plan.Goal{Objective: plan.Cost}, Options{})
	if err != nil || !pl.Feasible || pl.Clustering.Groups > 0 && pl.Clustering.Groups < 57 {
		t.Errorf("of its own choice: %s, %v, %v", pl.Clustering, pl.Reasons, err)
	}
}

// F84, for the other rules: a job that no walltime can hold is refused with a feasible suggestion.
func TestRulesThatNoWalltimeHolds(t *testing.T) {
	t.Parallel()
	s := cloud()
	s.Walltime, s.CPUs = 24*time.Hour, 30
	wide := stages(t, 158*time.Minute, 1, 512, 1)
	for i := range wide.Tasks {
		wide.Tasks[i].Label = fmt.Sprint(i % 30)
	}
	chain := stages(t, 158*time.Minute, slices.Repeat([]int{1}, 20)...)
	for _, tt := range []struct {
		work plan.Work
		rule string
		want string // the feasible suggestion; empty: it is accepted
	}{
		{wide, "runtime=48h", "a job of 18 tasks takes 47h24m0s, but no pilot has more than 24h0m0s for it; " +
			"--clustering runtime=23h58m33s is"},
		{wide, "runtime=23h50m", ""},
		{wide, "label", "takes 47h24m0s, but no pilot has more than 24h0m0s for it; --clustering none is"},
		{chain, "vertical", "a job of 20 tasks takes 52h40m0s, but no pilot has more than 24h0m0s for it; --clustering none is"},
		{stages(t, 158*time.Minute, slices.Repeat([]int{1}, 9)...), "vertical", ""},
	} {
		rule, err := clustering.Parse(tt.rule)
		if err != nil {
			t.Fatal(err)
		}
		problem := plan.Problem{Work: tt.work, Sites: []plan.Site{s}, Cluster: plan.Cluster{Hop: 2 * time.Second}}
		pl, err := Make(problem, plan.Goal{Objective: plan.Makespan}, Options{Clustering: &rule})
		if err != nil {
			t.Fatal(err)
		}
		if tt.want == "" && (!pl.Feasible || pl.Clustering != rule) ||
			tt.want != "" && (pl.Feasible || !strings.Contains(pl.Reasons[0], tt.want)) {
			t.Errorf("%s: feasible %t, %s, %q; want %q", tt.rule, pl.Feasible, pl.Clustering, pl.Reasons, tt.want)
		}
	}
}

// The planner chooses among all rules: it turns chains of short tasks into one job each, which clustering by level
// cannot match.
func TestChainsBecomeJobs(t *testing.T) {
	t.Parallel()
	s := cloud()
	s.CPUs = 4
	w := plan.Work{Name: "chains"}
	var edges [][2]int
	for i := range 80 {
		w.Tasks = append(w.Tasks, plan.Task{ID: fmt.Sprint(i), Needs: corral.Resources{CPUs: 1},
			Runtime: time.Duration(1+i%4) * time.Second})
		if i%10 > 0 {
			edges = append(edges, [2]int{i - 1, i})
		}
	}
	var err error
	if w.Graph, err = dag.New(len(w.Tasks), edges); err != nil {
		t.Fatal(err)
	}
	problem := plan.Problem{Work: w, Sites: []plan.Site{s}, Cluster: plan.Cluster{Hop: 5 * time.Second}}
	pl, err := Make(problem, plan.Goal{Objective: plan.Makespan}, Options{})
	if err != nil || !pl.Feasible || pl.Clustering.Kind != clustering.Vertical {
		t.Errorf("%s, %v, %v", pl.Clustering, pl.Reasons, err)
	}
}
