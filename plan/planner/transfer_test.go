package planner

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/validator"
	"github.com/corral-pilot/corral/workflow/clustering"
)

const mib = 1 << 20

// far returns a cloud at half the price that needs file transfers, at 1 MiB per second after 10 s.
func far() plan.Site {
	s := cloud()
	s.Name, s.Transfer = "far", plan.Transfer{Latency: 10 * time.Second, Bandwidth: mib}
	s.Tariff.Rate.Price /= 2
	return s
}

// with sets the number of bytes of each task.
func with(bytes int64, w plan.Work) plan.Work {
	for i := range w.Tasks {
		w.Tasks[i].Bytes = bytes
	}
	return w
}

// TestFilesTravel: a task occupies its host from the beginning of the input transfer to the end of the output transfer;
// transfers do not count as work.
func TestFilesTravel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		site  plan.Site
		bytes int64
		want  time.Duration
	}{
		{cloud(), 50 * mib, 2 * time.Hour},
		{far(), 50 * mib, 2*time.Hour + 2*time.Minute},
		{far(), 0, 2*time.Hour + 20*time.Second},
		{far(), plan.Here, 2 * time.Hour},
	} {
		problem := plan.Problem{Work: with(c.bytes, stages(t, time.Hour, 5, 5)), Sites: []plan.Site{c.site}}
		pl, err := Make(problem, plan.Goal{Objective: plan.Makespan}, Options{})
		if err != nil || pl.Makespan != corral.Seconds(c.want) {
			t.Errorf("%d bytes to site %s: %+v, %v; want %s", c.bytes, c.site.Name, pl, err, c.want)
			continue
		}
		way := 1 - 2*time.Hour.Seconds()/c.want.Seconds()
		if off := pl.Waste - way; off*off > 1e-12 {
			t.Errorf("%d bytes to site %s: waste %g, want %g", c.bytes, c.site.Name, pl.Waste, way)
		}
	}
}

// TestFarWhereThereIsTime: the deadline decides whether the cheaper site, which needs file transfers, suffices.
func TestFarWhereThereIsTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bytes    int64
		deadline time.Duration
		want     string
	}{
		{590 * mib, 2*time.Hour + 20*time.Minute, "far"},
		{590 * mib, 2*time.Hour + 19*time.Minute, "cloud"},
		{290 * mib, 2*time.Hour + 19*time.Minute, "far"},
	} {
		problem := plan.Problem{Work: with(c.bytes, stages(t, time.Hour, 5, 5)), Sites: []plan.Site{cloud(), far()}}
		pl, err := Make(problem, plan.Goal{Objective: plan.Cost, Deadline: corral.Seconds(c.deadline)}, Options{})
		if err != nil || !pl.Feasible {
			t.Fatalf("deadline %s: %+v, %v", c.deadline, pl, err)
		}
		for _, q := range pl.Pilots {
			if q.Site != c.want {
				t.Errorf("deadline %s: a pilot at %s, want all at %s", c.deadline, q.Site, c.want)
			}
		}
	}
}

// TestTooFarForTheWalltime: a task that fits a walltime without transfers does not fit if transfers need more than the
// rest of the walltime.
func TestTooFarForTheWalltime(t *testing.T) {
	t.Parallel()
	site := far()
	site.Walltime = 80 * time.Minute
	for bytes, want := range map[int64]bool{1000 * mib: true, 1500 * mib: false} {
		pl, err := Make(plan.Problem{Work: with(bytes, stages(t, time.Hour, 1)), Sites: []plan.Site{site}},
			plan.Goal{Objective: plan.Makespan}, Options{})
		if err != nil || pl.Feasible != want {
			t.Errorf("%d bytes: %+v, %v; want a plan: %t", bytes, pl, err, want)
		}
	}
}

// TestLatencyMakesJobsOfSeveralTasks: if file transfers take a long time compared with the tasks, several tasks share
// one job.
func TestLatencyMakesJobsOfSeveralTasks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		site plan.Site
		want bool
	}{{cloud(), false}, {far(), true}} {
		problem := plan.Problem{Work: with(mib, stages(t, time.Second, 64)), Sites: []plan.Site{c.site}}
		pl, err := Make(problem, plan.Goal{Objective: plan.Cost}, Options{})
		if err != nil || (pl.Clustering.Kind != clustering.None) != c.want {
			t.Errorf("site %s: %+v, %v; want jobs of several tasks: %t", c.site.Name, pl.Clustering, err, c.want)
		}
	}
}

// TestFilesOfWorkersThatAreThere: the files of running tasks are already present; the files of the next task are
// transferred.
func TestFilesOfWorkersThatAreThere(t *testing.T) {
	t.Parallel()
	there := plan.Present{Site: "far", Hosts: 1, Host: cloud().Host, Pace: far().Pace, End: 10 * time.Hour,
		Keep: plan.Unbounded, Running: []plan.Running{{Task: 0}}}
	work := with(50*mib, stages(t, time.Hour, 1, 1))
	work.Tasks[0].Bytes = plan.Here
	f := Expect(plan.Problem{Work: work, Present: []plan.Present{there}})
	if want := 2*time.Hour + time.Minute; f.End != want || f.Until[0] != want {
		t.Errorf("%+v, want the end after %s", f, want)
	}
}

// A plan that assumes shorter transfers than the actual ones violates a separate rule.
func TestWaysOfFilesAreCounted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		problem, blind := feasible(t, rng, 30)
		for i := range problem.Sites {
			s := &problem.Sites[i]
			s.Transfer = plan.Transfer{Latency: s.Transfer.Latency + time.Second, Bandwidth: 1e5}
		}
		for _, b := range validator.All(problem, blind) {
			if b.Rule == "transfer" {
				return
			}
		}
		rt.Fatal("a plan that reckons with a shorter way of files is valid")
	})
}
