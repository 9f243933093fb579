package sim_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/resubmit"
	"github.com/corral-pilot/corral/workflow/dag"
)

// Requirements on a provisioner from Juve's Resource management for scientific workflows (2012), in simulation.

// lost returns the total time and the number of the unsuccessful attempts.
func lost(tr *sim.Trace) (sum time.Duration, attempts int) {
	for _, r := range tr.Records {
		if o := r.Finished; o != nil && o.Status != execution.Done && o.Started != 0 {
			sum += o.Ended.Time().Sub(o.Started.Time())
			attempts++
		}
	}
	return sum, attempts
}

// F81: with tasks that fail at rates of up to 50 %, all are retried until they complete; the pilots hold no more than
// was requested; and losses are recorded: all the time held is work, lost work, or time without a task.
func TestFailuresAreRetriedAndAccounted(t *testing.T) {
	t.Parallel()
	const pilots, cpus, walltime = 4, 8, 6 * time.Hour
	before := -1
	for _, rate := range []float64{0, 0.1, 0.3, 0.5} {
		w := many(t, 300, 30)
		for i := range w.Tasks {
			w.Tasks[i].Retries = 100
		}
		s := sim.Scenario{Work: w, Sites: []sim.Site{site(100 * time.Second)},
			Failures: sim.Failures{Task: sim.FailingTasks(w, rate, 5)}}
		for range pilots {
			s.Asks = append(s.Asks, pilot(1, cpus, walltime))
		}
		tr := sim.Run(s)
		wasted, failed := lost(tr)
		budget := pilots * cpus * walltime.Hours()
		expected := rate / (1 - rate) * 300
		if tr.Ending != sim.Done || tr.Tasks().Done != 300 || failed <= before ||
			float64(failed) < expected*0.75-1 || float64(failed) > expected*1.25+1 {
			t.Errorf("rate %g: %s (%s), %+v, %d attempts failed, about %.0f are expected", rate, tr.Ending, tr.Why,
				tr.Tasks(), failed, expected)
		}
		if held := tr.CoreHours(); held > budget || tr.Work()+wasted.Hours() > held || rate > 0 && wasted == 0 {
			t.Errorf("rate %g: %.2f core-hours held of %.0f, %.2f of them work, %.2f lost", rate, held, budget,
				tr.Work(), wasted.Hours())
		}
		before = failed
	}
}

// F81, for pilots: pilots that die are requested again, and the work completes.
func TestLostPilotsAreReplaced(t *testing.T) {
	t.Parallel()
	for _, mean := range []time.Duration{4 * time.Hour, time.Hour, 20 * time.Minute} {
		s := sim.Scenario{Work: many(t, 300, 30), Sites: []sim.Site{site(100 * time.Second)},
			Failures: sim.Failures{Pilot: sim.FailingPilots(mean, 7)}}
		for range 3 {
			a := pilot(1, 4, 6*time.Hour)
			a.Resubmit = resubmit.Policy{Mode: resubmit.Forever, Retries: 1_000_000}
			s.Asks = append(s.Asks, a)
		}
		tr := sim.Run(s)
		if tr.Ending != sim.Done || tr.Tasks().Done != 300 || mean < time.Hour && len(tr.Pilots) < 4 {
			t.Errorf("mean %s: %s (%s), %+v with %d pilots", mean, tr.Ending, tr.Why, tr.Tasks(), len(tr.Pilots))
		}
	}
}

// F82: the end of a pilot cuts off a task only if the task took longer than its estimate, and this is recorded.
func TestOnlyWrongEstimatesAreCut(t *testing.T) {
	t.Parallel()
	killed := 0
	for seed := range uint64(30) {
		w := many(t, 200, 20)
		s := sim.Scenario{Work: w, Sites: []sim.Site{site(100 * time.Second)}}
		for n := range 20 {
			a := pilot(1, 4, 15*time.Minute)
			a.Submit = corral.Seconds(time.Duration(n) * 3 * time.Minute)
			s.Asks = append(s.Asks, a)
		}
		exact := sim.Run(s)
		if wasted, n := lost(exact); n > 0 || exact.Ending != sim.Done {
			t.Fatalf("%s (%s), and with exact estimates %d attempts lost %s", exact.Ending, exact.Why, n, wasted)
		}
		s.Runtime = sim.Runtimes(w, sim.Lognormal(w, 0.5, seed))
		tr := sim.Run(s)
		for _, r := range tr.Records {
			o := r.Finished
			if o == nil || o.Status != execution.Cut {
				continue
			}
			killed++
			if took := s.Runtime(int(o.Task), 1); took <= w.Tasks[o.Task].Estimate || o.Ended <= o.Started {
				t.Errorf("task %d takes %s of %s estimated, and was cut: %+v", o.Task, took, w.Tasks[o.Task].Estimate, o)
			}
		}
	}
	if killed == 0 {
		t.Error("no task was cut: nothing was tested")
	}
}

// F84: the wide level of Epigenome (E2.5), with 512 tasks of 2 h 38 min, in pilots of 24 hours, each of which can run
// nine such tasks in sequence. For any rule, a job that no pilot can run is split into as few jobs as possible, no job
// contains tasks that depend on each other through a task outside the job, and no task is cut off.
func TestJobsFitWithinWalltimes(t *testing.T) {
	t.Parallel()
	const long = 158 * time.Minute
	level, chains := []task{{time.Minute, nil}}, []task{{time.Minute, nil}}
	var labels []int
	for i := range 512 {
		level = append(level, task{long, []int{0}})
		labels = append(labels, i%30)
	}
	for range 30 {
		parent := 0
		for range 18 {
			chains = append(chains, task{long, []int{parent}})
			parent = len(chains) - 1
		}
	}
	labels = append([]int{-1}, labels...)
	wide, deep := work(t, level...), work(t, chains...)
	estimates := make([]time.Duration, len(wide.Tasks))
	for i := range estimates {
		estimates[i] = wide.Tasks[i].Estimate
	}
	for _, tt := range []struct {
		name     string
		work     execution.Spec
		clusters [][]int
		jobs     int // number of jobs in addition to that of the first task
	}{
		{"horizontal=30", wide, dag.ByLevel(wide.Graph, 30, nil), 60}, // 17 or 18 tasks: nine, and the others
		{"horizontal=60", wide, dag.ByLevel(wide.Graph, 60, nil), 60},
		{"runtime=48h", wide, dag.ByRuntime(wide.Graph, estimates, 48*time.Hour, nil), 58},
		{"runtime=24h", wide, dag.ByRuntime(wide.Graph, estimates, 24*time.Hour, nil), 58},
		{"label", wide, dag.ByLabel(wide.Graph, labels), 60},
		{"vertical", deep, dag.Chains(deep.Graph, nil), 60},
	} {
		tt.work.Clusters = tt.clusters
		s := sim.Scenario{Work: tt.work, Sites: []sim.Site{site(0)}}
		for n := range 8 {
			a := pilot(1, 15, 24*time.Hour)
			a.Submit = corral.Seconds(time.Duration(n/2) * 24 * time.Hour)
			s.Asks = append(s.Asks, a)
		}
		tr := sim.Run(s)
		jobs := map[int64]bool{}
		for _, r := range tr.Records {
			if a := r.Assigned; a != nil {
				jobs[a.Seq] = true
				var sum time.Duration
				for _, p := range a.Parts {
					sum += tt.work.Tasks[p.Task].Estimate
				}
				if sum > 24*time.Hour {
					t.Errorf("%s: a job of %d tasks takes %s", tt.name, len(a.Parts), sum)
				}
			}
		}
		wasted, cut := lost(tr)
		if tr.Ending != sim.Done || cut > 0 || len(jobs) != 1+tt.jobs {
			t.Errorf("%s: %s (%s) with %d jobs, of which %d were cut after %s; want %d", tt.name, tr.Ending, tr.Why,
				len(jobs), cut, wasted, 1+tt.jobs)
		}
	}
}

// A job that waits while the remaining time of workers decreases is split once no worker has enough time for the whole
// job, so that the rest of the walltime is used: of three jobs of four hours on one cpu for ten hours the third is
// split, because the remaining time is enough for one task.
func TestJobsThatWaitAreParted(t *testing.T) {
	t.Parallel()
	tasks := make([]task, 12)
	for i := range tasks {
		tasks[i].estimate = time.Hour
	}
	w := work(t, tasks...)
	w.Clusters = [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}
	asks := []sim.Ask{pilot(1, 1, 10*time.Hour)}
	for n := range 3 {
		a := pilot(1, 1, 90*time.Minute)
		a.Submit = corral.Seconds(time.Duration(11+2*n) * time.Hour)
		asks = append(asks, a)
	}
	tr := sim.Run(sim.Scenario{Work: w, Sites: []sim.Site{site(0)}, Asks: asks, Stall: 24 * time.Hour})
	before := 0 // number of tasks completed during the first pilot
	for _, r := range tr.Records {
		if o := r.Finished; o != nil && o.Ended.Time().Sub(tr.Begin) <= 10*time.Hour {
			before++
		}
	}
	if _, cut := lost(tr); tr.Ending != sim.Done || cut > 0 || before != 9 {
		t.Errorf("%s (%s): %d tasks ended within the first walltime, want 9; %d were cut", tr.Ending, tr.Why, before, cut)
	}
}
