package sim_test

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/resubmit"
	"github.com/corral-pilot/corral/workflow/dag"
)

// A task is a task of a test's workflow: its estimate, and the indices of its parents.
type task struct {
	estimate time.Duration
	after    []int
}

func work(tb testing.TB, tasks ...task) execution.Spec {
	tb.Helper()
	var s execution.Spec
	var edges [][2]int
	for i, t := range tasks {
		s.Tasks = append(s.Tasks, execution.TaskSpec{ID: fmt.Sprintf("t%d", i), CPUs: 1, MemoryMiB: 100,
			Estimate: t.estimate})
		for _, p := range t.after {
			edges = append(edges, [2]int{p, i})
		}
	}
	g, err := dag.New(len(tasks), edges)
	if err != nil {
		tb.Fatal(err)
	}
	s.Graph = g
	return s
}

func site(wait time.Duration) sim.Site {
	return sim.Site{Site: plan.Site{
		Name: "hpc", Host: corral.Resources{CPUs: 64, MemoryMiB: 64000, GPUs: plan.Unlimited, DiskMiB: plan.Unlimited},
		Hosts:  100,
		Pilots: plan.Unlimited, CPUs: plan.Unlimited, Walltime: plan.Unbounded,
		Overhead: 10 * time.Second, Wait: func(plan.Shape) time.Duration { return wait },
	}}
}

func pilot(hosts, cpus int, walltime time.Duration) sim.Ask {
	return sim.Ask{Pilot: plan.Pilot{Site: "hpc",
		Shape: corral.Shape{Hosts: hosts, CPUs: cpus, MemoryMiB: 4000, Walltime: corral.Seconds(walltime)}}}
}

// life summarizes a trace: each attempt at a task with its begin and end in seconds, then each pilot.
func life(tr *sim.Trace) (lines []string) {
	for _, r := range tr.Records {
		switch o, b := r.Finished, r.Returned; {
		case o != nil:
			from, to := o.Started.Time().Sub(tr.Begin).Seconds(), o.Ended.Time().Sub(tr.Begin).Seconds()
			_, host, _ := strings.Cut(o.Worker, "/")
			lines = append(lines, fmt.Sprintf("t%d.%d host %s %g-%g %s", o.Task, o.Attempt, host, from, to, o.Status))
		case b != nil:
			lines = append(lines, fmt.Sprintf("%d returned at %g, started %v", len(b.Seqs),
				r.At.Time().Sub(tr.Begin).Seconds(), b.Started))
		}
	}
	for _, h := range tr.Pilots {
		lines = append(lines, fmt.Sprintf("pilot %d.%d asked %g start %g ready %g end %g %s", h.Glidein, h.Attempt,
			h.Submit.Seconds(), h.Start.Seconds(), h.Ready.Seconds(), h.End.Seconds(), h.Outcome))
	}
	return append(lines, string(tr.Ending))
}

// The expected lines were determined by hand. Pilots wait 100 s and are ready 10 s later, unless the scenario specifies
// otherwise.
func TestLives(t *testing.T) {
	t.Parallel()
	const m = time.Minute
	hpc := site(100 * time.Second)
	here := site(0)
	here.Name, here.Overhead = "here", 0
	far := hpc
	far.Transfer = plan.Transfer{Latency: time.Second, Bandwidth: 1e6}
	chain := work(t, task{m, nil}, task{m, []int{0}}, task{30 * time.Second, []int{1}})
	fork := work(t, task{m, nil}, task{m, []int{0}}, task{30 * time.Second, []int{0}}, task{m, []int{1, 2}})
	single := work(t, task{m, nil})
	grouped := work(t, task{m + 500*time.Millisecond, nil}, task{90 * time.Second, []int{0}}, task{90 * time.Second,
		[]int{0}})
	grouped.Clusters = dag.ByLevel(grouped.Graph, 1, nil)
	retried := work(t, task{m, nil})
	retried.Tasks[0].Retries = 1
	pair := work(t, task{m, nil}, task{m, nil})
	fails := func(times int) sim.Failures {
		return sim.Failures{Task: func(_, attempt int) float64 {
			if attempt <= times {
				return 0.5
			}
			return 1
		}}
	}
	with := func(a sim.Ask, change func(*sim.Ask)) sim.Ask { change(&a); return a }
	for _, tt := range []struct {
		name string
		sim.Scenario
		want []string
	}{
		{"a chain", sim.Scenario{Work: chain, Asks: []sim.Ask{pilot(1, 2, time.Hour)}}, []string{
			"t0.1 host 0 110-170 done", "t1.1 host 0 170-230 done", "t2.1 host 0 230-260 done",
			"pilot 1.1 asked 0 start 100 ready 110 end 260 removed", "done",
		}},
		{"a pilot that has run the first task since before, and has 100 s left for others", sim.Scenario{
			Work: chain, Sites: []sim.Site{here, hpc}, Cluster: sim.Cluster{Cluster: plan.Cluster{Hop: 2 * time.Second}},
			Asks: []sim.Ask{with(pilot(2, 2, time.Hour), func(a *sim.Ask) {
				a.Site, a.Past = "here", &sim.Past{Running: []plan.Running{{Task: 0, Host: 1}}, Until: 100 * time.Second}
			}), pilot(1, 2, time.Hour)},
		}, []string{
			"t0.1 host 1 0-60 done", "t1.1 host 0 112-172 done", "t2.1 host 0 174-204 done",
			"pilot 1.1 asked 0 start 0 ready 0 end 204 removed",
			"pilot 2.1 asked 0 start 100 ready 110 end 204 removed", "done",
		}},
		{"a pilot that has been idle for 50 s and leaves after 60 s", sim.Scenario{
			Work: single, Sites: []sim.Site{here, hpc},
			Asks: []sim.Ask{with(pilot(2, 2, time.Hour), func(a *sim.Ask) {
				a.Site, a.Idle, a.Past = "here", m, &sim.Past{Idle: 50 * time.Second}
			}), pilot(1, 2, time.Hour)},
		}, []string{
			"t0.1 host 0 110-170 done",
			"pilot 1.1 asked 0 start 0 ready 0 end 10 idle",
			"pilot 2.1 asked 0 start 100 ready 110 end 170 removed", "done",
		}},
		{"a chain with a hop", sim.Scenario{
			Work: chain, Asks: []sim.Ask{pilot(1, 2, time.Hour)},
			Cluster: sim.Cluster{Cluster: plan.Cluster{Hop: 2 * time.Second}},
		}, []string{
			"t0.1 host 0 112-172 done", "t1.1 host 0 174-234 done", "t2.1 host 0 236-266 done",
			"pilot 1.1 asked 0 start 100 ready 110 end 266 removed", "done",
		}},
		{"a chain on a pilot that takes a while to leave", sim.Scenario{
			Work: chain, Asks: []sim.Ask{pilot(1, 2, time.Hour)}, Cluster: sim.Cluster{Cluster: plan.Cluster{Leave: 2 * time.Second}},
		}, []string{
			"t0.1 host 0 110-170 done", "t1.1 host 0 170-230 done", "t2.1 host 0 230-260 done",
			"pilot 1.1 asked 0 start 100 ready 110 end 262 removed", "done",
		}},
		{"a chain whose files travel", sim.Scenario{
			Work: chain, Asks: []sim.Ask{pilot(1, 2, time.Hour)}, Sites: []sim.Site{far},
			Bytes: func(task int) int64 { return int64(task) * 2e6 },
		}, []string{
			"t0.1 host 0 111-171 done", "t1.1 host 0 174-234 done", "t2.1 host 0 239-269 done",
			"pilot 1.1 asked 0 start 100 ready 110 end 269 removed", "done",
		}},
		{"files of two tasks of a job, with one latency", sim.Scenario{
			Work: grouped, Asks: []sim.Ask{pilot(1, 1, time.Hour)}, Sites: []sim.Site{far},
			Bytes: func(int) int64 { return 2e6 },
		}, []string{
			"t0.1 host 0 113-173.5 done", "t1.1 host 0 176.5-266.5 done", "t2.1 host 0 268.5-358.5 done",
			"pilot 1.1 asked 0 start 100 ready 110 end 358.5 removed", "done",
		}},
		{"files that are there already", sim.Scenario{
			Work: single, Asks: []sim.Ask{pilot(1, 1, time.Hour)}, Sites: []sim.Site{far},
			Bytes: func(int) int64 { return plan.Here },
		}, []string{
			"t0.1 host 0 110-170 done", "pilot 1.1 asked 0 start 100 ready 110 end 170 removed", "done",
		}},
		{"a fork", sim.Scenario{Work: fork, Asks: []sim.Ask{pilot(1, 2, time.Hour)}}, []string{
			"t0.1 host 0 110-170 done", "t2.1 host 0 170-200 done", "t1.1 host 0 170-230 done", "t3.1 host 0 " +
				"230-290 done",
			"pilot 1.1 asked 0 start 100 ready 110 end 290 removed", "done",
		}},
		{"a fork on one cpu", sim.Scenario{Work: fork, Asks: []sim.Ask{pilot(1, 1, time.Hour)}}, []string{
			"t0.1 host 0 110-170 done", "t1.1 host 0 170-230 done", "t2.1 host 0 230-260 done", "t3.1 host 0 " +
				"260-320 done",
			"pilot 1.1 asked 0 start 100 ready 110 end 320 removed", "done",
		}},
		{"a pilot that is planned for later", sim.Scenario{Work: single, Asks: []sim.Ask{
			with(pilot(1, 1, time.Hour), func(a *sim.Ask) { a.Submit = corral.Seconds(50 * time.Second) }),
		}}, []string{
			"t0.1 host 0 160-220 done", "pilot 1.1 asked 50 start 150 ready 160 end 220 removed", "done",
		}},
		// Of 200 s the pilot reserves 10 (a twentieth) for leaving, and its worker reserves 2; afterwards it is known
		// that the task takes 198.
		{"a pilot that ends while a task runs", sim.Scenario{
			Work: single, Asks: []sim.Ask{pilot(1, 1, 200*time.Second), pilot(1, 1, time.Hour)},
			Runtime: func(int, int) time.Duration { return 4 * m }, Sites: []sim.Site{func() sim.Site {
				s := hpc
				s.Draw = func(_ plan.Shape, n int) time.Duration { return time.Duration(100+400*n) * time.Second }
				return s
			}()},
		}, []string{
			"t0.1 host 0 110-288 cut", "t0.2 host 0 510-750 done",
			"pilot 1.1 asked 0 start 100 ready 110 end 288 expired",
			"pilot 2.1 asked 0 start 500 ready 510 end 750 removed", "done",
		}},
		// Host 1 fails at 130; its last heartbeat was at 128, and its lease expires 20 s later; the tick at 148.5
		// detects this.
		{"a lost host", sim.Scenario{Work: pair, Asks: []sim.Ask{pilot(2, 1, time.Hour)}, Failures: sim.Failures{
			Host: func(h sim.Host) (time.Duration, bool) { return 30 * time.Second, h.Number == 1 },
		}}, []string{
			"1 returned at 148.5, started true", "t0.1 host 0 110-170 done", "t1.2 host 0 170-230 done",
			"pilot 1.1 asked 0 start 100 ready 110 end 230 removed", "done",
		}},
		// The pilot's job ends at 130, and corrald sees this 50 ms later; the next attempt is delayed by a back-off of
		// 2 s and a jitter.
		{"a pilot that its site ends", sim.Scenario{Work: single, Failures: sim.Failures{
			Pilot: func(_ string, n int) (time.Duration, bool) { return 30 * time.Second, n == 0 },
		}, Asks: []sim.Ask{with(pilot(1, 1, time.Hour),
			func(a *sim.Ask) { a.Resubmit = resubmit.Policy{Retries: 1} })}}, []string{
			"1 returned at 148.5, started true", "t0.2 host 0 242.439-302.439 done",
			"pilot 1.1 asked 0 start 100 ready 110 end 130 preempted", "pilot 1.2 asked 132.439 start 232.439 ready " +
				"242.439 end 302.439 removed", "done",
		}},
		{"a retry", sim.Scenario{Work: retried, Asks: []sim.Ask{pilot(1, 1, time.Hour)}, Failures: fails(1)}, []string{
			"t0.1 host 0 110-140 failed", "t0.2 host 0 140-200 done", "pilot 1.1 asked 0 start 100 ready 110 end " +
				"200 removed", "done",
		}},
		{"no retry is left", sim.Scenario{Work: retried, Asks: []sim.Ask{pilot(1, 1, time.Hour)}, Failures: fails(2)},
			[]string{
				"t0.1 host 0 110-140 failed", "t0.2 host 0 140-170 failed", "pilot 1.1 asked 0 start 100 ready 110 end " +
					"170 removed", "failed",
			}},
		{"no pilot", sim.Scenario{Work: single}, []string{"stalled"}},
		{"a pilot without work", sim.Scenario{Work: single, Linger: true, Asks: []sim.Ask{
			with(pilot(1, 1, time.Hour), func(a *sim.Ask) { a.Idle = 5 * m }),
		}}, []string{
			"t0.1 host 0 110-170 done", "pilot 1.1 asked 0 start 100 ready 110 end 470 idle", "done",
		}},
		{"a maintenance", sim.Scenario{Work: single, Asks: []sim.Ask{pilot(1, 1, time.Hour)},
			Sites: []sim.Site{func() sim.Site {
				s := hpc
				s.Closed = []plan.Span{{From: 50 * m, To: 100 * m}}
				return s
			}()}}, []string{
			"t0.1 host 0 6010-6070 done", "pilot 1.1 asked 0 start 6000 ready 6010 end 6070 removed", "done",
		}},
		{"a site with room for one pilot at a time", sim.Scenario{
			Work: pair, Asks: []sim.Ask{pilot(1, 1, 2*m), pilot(1, 1, 2*m)}, Sites: []sim.Site{func() sim.Site {
				s := hpc
				s.CPUs = 1
				return s
			}()},
		}, []string{
			"t0.1 host 0 110-170 done", "t1.1 host 0 222-282 done",
			"pilot 1.1 asked 0 start 100 ready 110 end 212 expired",
			"pilot 2.1 asked 0 start 212 ready 222 end 282 removed", "done",
		}},
		// At 170.5 the worker has 164.5 s left, less than the 180 that the two tasks take as one job: they run
		// separately.
		{"a clustered job that no worker has time for any more", sim.Scenario{
			Work: grouped, Asks: []sim.Ask{pilot(1, 2, 250*time.Second)},
		}, []string{
			"t0.1 host 0 110-170.5 done", "t1.1 host 0 170.5-260.5 done", "t2.1 host 0 170.5-260.5 done",
			"pilot 1.1 asked 0 start 100 ready 110 end 260.5 removed", "done",
		}},
		{"a pilot that never starts", sim.Scenario{Work: single, Asks: []sim.Ask{pilot(1, 1, time.Hour)},
			Sites: []sim.Site{func() sim.Site {
				s := hpc
				s.Draw = func(plan.Shape, int) time.Duration { return sim.Never }
				return s
			}()}}, []string{"pilot 1.1 asked 0 start -1e-09 ready -1e-09 end 604800 failed", "stalled"}},
		{"a horizon", sim.Scenario{Work: chain, Asks: []sim.Ask{pilot(1, 1, time.Hour)}, Horizon: 200 * time.Second},
			[]string{
				"t0.1 host 0 110-170 done", "pilot 1.1 asked 0 start 100 ready 110 end 200 removed", "broken off",
			}},
		{"a host that fails before its worker comes", sim.Scenario{
			Work: pair, Asks: []sim.Ask{with(pilot(2, 1, time.Hour), func(a *sim.Ask) { a.Idle = m })}, Linger: true,
			Failures: sim.Failures{Host: func(h sim.Host) (time.Duration, bool) {
				return 5 * time.Second,
					h.Number == 1
			}},
		}, []string{
			"t0.1 host 0 110-170 done", "t1.1 host 0 170-230 done",
			"pilot 1.1 asked 0 start 100 ready 110 end 290 idle", "done",
		}},
		{"a site that refuses", sim.Scenario{Work: single, Asks: []sim.Ask{pilot(1, 65, time.Hour)}},
			[]string{"stalled"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.Sites == nil {
				tt.Sites = []sim.Site{hpc}
			}
			if diff := cmp.Diff(tt.want, life(sim.Run(tt.Scenario))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMeasures(t *testing.T) {
	t.Parallel()
	fork := work(t, task{time.Minute, nil}, task{time.Minute, []int{0}}, task{30 * time.Second, []int{0}})
	tr := sim.Run(sim.Scenario{
		Work: fork, Sites: []sim.Site{site(0)}, Asks: []sim.Ask{pilot(1, 1, time.Hour), pilot(1, 2, time.Hour)},
	})
	// Both pilots are held from 0 to 130 s; the tasks take 150 s.
	if got, want := tr.Makespan(), 130*time.Second; got != want {
		t.Errorf("makespan %s, want %s", got, want)
	}
	if got, want := tr.CoreHours()*3600, 390.0; math.Abs(got-want) > 1e-6 {
		t.Errorf("%g core-seconds held, want %g", got, want)
	}
	if got, want := tr.Work()*3600, 150.0; math.Abs(got-want) > 1e-6 {
		t.Errorf("%g core-seconds of work, want %g", got, want)
	}
	if done := tr.Tasks().Done; done != 3 {
		t.Errorf("%d tasks done, want 3", done)
	}
	if r := tr.Report(); r == nil || time.Duration(r.Makespan) != 130*time.Second {
		t.Errorf("report %+v, want the same makespan", r)
	}
}

// many returns a workflow of n tasks in levels of the given width; each task depends on two of the previous level.
func many(tb testing.TB, n, width int) execution.Spec {
	var tasks []task
	for i := range n {
		t := task{estimate: time.Duration(10+i*7919%100) * time.Second}
		if i >= width {
			t.after = []int{i - width, (i/width-1)*width + (i*31)%width}
		}
		tasks = append(tasks, t)
	}
	return work(tb, tasks...)
}

// BenchmarkRun simulates 5,000 tasks of about 60 s on pilots that wait, end, and are resubmitted.
func BenchmarkRun(b *testing.B) {
	for _, hosts := range []int{4, 16, 64} {
		b.Run(fmt.Sprintf("%d hosts", hosts), func(b *testing.B) {
			s := thousand(b, hosts)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if t := sim.Run(s(i)); t.Ending != sim.Done {
					b.Fatal(t.Ending, t.Why)
				}
			}
		})
	}
}

// BenchmarkThousandRuns simulates 1,000 of these runs on all processors: the budget is 60 s on two processors.
func BenchmarkThousandRuns(b *testing.B) {
	for b.Loop() {
		sim.Runs(b.Context(), 1000, runtime.GOMAXPROCS(0), thousand(b, 16), func(i int, t *sim.Trace) time.Duration {
			if t.Ending != sim.Done {
				b.Error(i, t.Ending, t.Why)
			}
			return t.Over
		})
	}
}

// thousand returns a function that returns scenarios of the same work by number.
func thousand(tb testing.TB, hosts int) func(i int) sim.Scenario {
	w := many(tb, 5000, 200)
	for i := range w.Tasks {
		w.Tasks[i].Retries = 3
	}
	waits := []time.Duration{time.Minute, 10 * time.Minute, time.Hour}
	return func(i int) sim.Scenario {
		seed := uint64(i)
		x := site(0)
		x.Draw = sim.SampledWaits("hpc", waits, seed)
		s := sim.Scenario{
			Work: w, Sites: []sim.Site{x}, Runtime: sim.Runtimes(w, sim.Lognormal(w, 0.5, seed)),
			Speed:    sim.ByHost(0.1, seed),
			Failures: sim.Failures{Task: sim.FailingTasks(w, 0.01, seed)}, Stall: 24 * time.Hour,
		}
		for range hosts / 4 {
			a := pilot(4, 4, 2*time.Hour)
			a.Resubmit = resubmit.Policy{Mode: resubmit.Forever}
			s.Asks = append(s.Asks, a)
		}
		return s
	}
}
