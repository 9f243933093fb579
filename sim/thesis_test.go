package sim_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/execution"
	"github.com/corral-pilot/corral/resubmit"
	"github.com/corral-pilot/corral/sim"
)

// What Juve's Resource management for scientific workflows (2012) asks of a provisioner, played.

// lost is the time of the attempts that were not done, and their number.
func lost(tr *sim.Trace) (sum time.Duration, attempts int) {
	for _, r := range tr.Records {
		if o := r.Finished; o != nil && o.Status != execution.Done && o.Started != 0 {
			sum += o.Ended.Time().Sub(o.Started.Time())
			attempts++
		}
	}
	return sum, attempts
}

// F81: with tasks that fail at rates of up to a half all are retried until they are done; the pilots hold no more than
// was asked for; and what was lost is in the record: all that was held is work, lost work, and time without a task.
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

// F81, for pilots: those that die are asked for again, and the work is done all the same.
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

// F82: the end of a pilot kills no task unless the task took longer than its estimate, and what was killed is in the
// record.
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

// F84: Epigenome's wide level (E2.5): 512 tasks of 2 h 38 min. In 30 groups each would take 45 hours, in 60 half of
// that: pilots of 24 hours can take the latter only. A group that none can take is not refused, its tasks are jobs of
// their own then. No job is of tasks of several levels, and none is cut.
func TestLevelsAreClusteredWithinWalltimes(t *testing.T) {
	t.Parallel()
	for groups, jobs := range map[int]int{30: 512, 60: 60} {
		tasks := []task{{time.Minute, nil}}
		for range 512 {
			tasks = append(tasks, task{158 * time.Minute, []int{0}})
		}
		w := work(t, tasks...)
		w.Groups = groups
		s := sim.Scenario{Work: w, Sites: []sim.Site{site(0)}}
		for n := range 6 {
			a := pilot(1, 15, 24*time.Hour)
			a.Submit = corral.Seconds(time.Duration(n/2) * 24 * time.Hour)
			s.Asks = append(s.Asks, a)
		}
		tr := sim.Run(s)
		levels := map[int64]map[bool]bool{} // :: job → whether it has a task of the first level
		for _, r := range tr.Records {
			if a := r.Assigned; a != nil {
				levels[a.Seq] = map[bool]bool{}
				for _, p := range a.Parts {
					levels[a.Seq][p.Task == 0] = true
				}
			}
		}
		wasted, cut := lost(tr)
		if tr.Ending != sim.Done || cut > 0 || len(levels) != 1+jobs {
			t.Errorf("%d groups: %s (%s) with %d jobs, of which %d were cut after %s; want %d", groups, tr.Ending,
				tr.Why, len(levels), cut, wasted, 1+jobs)
		}
		for job, of := range levels {
			if len(of) != 1 {
				t.Errorf("%d groups: job %d has tasks of both levels", groups, job)
			}
		}
	}
}
