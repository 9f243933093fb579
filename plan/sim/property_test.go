package sim_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/sim"
	"github.com/corral-pilot/corral/resubmit"
	"github.com/corral-pilot/corral/workflow/dag"
)

// anyScenario generates a small scenario. Its pilots are resubmitted forever, so that the work can always be completed.
func anyScenario(t *rapid.T, broken bool) sim.Scenario {
	number := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
	seed := uint64(number("seed", 0, 1000))
	var w execution.Spec
	var edges [][2]int
	for i := range number("tasks", 1, 30) {
		estimate := time.Duration(rapid.SampledFrom([]int{20, 100, 1000, 30_000, 90_000}).Draw(t,
			"estimate")) * time.Millisecond
		w.Tasks = append(w.Tasks, execution.TaskSpec{
			ID: fmt.Sprintf("t%d", i), CPUs: number("cpus", 1, 3), MemoryMiB: 500 * number("memory", 0, 4),
			Estimate: estimate,
			Retries:  1000,
		})
		for p := range i {
			if number("edge", 0, 9) == 0 {
				edges = append(edges, [2]int{p, i})
			}
		}
	}
	var err error
	if w.Graph, err = dag.New(len(w.Tasks), edges); err != nil {
		t.Fatal(err)
	}
	switch number("clustering", 0, 3) {
	case 1:
		w.Clusters = dag.ByLevel(w.Graph, number("groups", 1, 3), nil)
	case 2:
		w.Clusters = dag.Chains(w.Graph, nil)
	case 3:
		labels := make([]int, len(w.Tasks))
		for i := range labels {
			labels[i] = number("label", -1, 4)
		}
		w.Clusters = dag.ByLabel(w.Graph, labels)
	}
	s := sim.Scenario{
		Work: w, Stall: 24 * time.Hour, Horizon: 30 * 24 * time.Hour,
		Runtime: sim.Runtimes(w, sim.Lognormal(w, 0.6, seed), sim.Uniform(w, 0.5, seed)), Speed: sim.ByHost(0.2, seed),
		Cluster: sim.Cluster{Cluster: plan.Cluster{
			Hop: time.Duration(number("hop", 0, 3000)) * time.Millisecond, Rate: float64(number("rate", 0, 20)),
		}},
	}
	for i := range number("sites", 1, 2) {
		x := site(0)
		x.Name = fmt.Sprintf("site%d", i)
		x.Draw = sim.SampledWaits(x.Name, []time.Duration{0, time.Second, time.Minute, 20 * time.Minute}, seed)
		if rapid.Bool().Draw(t, "narrow") {
			x.CPUs = 12
		}
		s.Sites = append(s.Sites, x)
	}
	for range number("asks", 1, 4) {
		a := pilot(number("hosts", 1, 3), number("host cpus", 3, 4), time.Duration(number("walltime", 2000,
			6000))*time.Second)
		a.Site = s.Sites[number("site", 0, len(s.Sites)-1)].Name
		a.Submit = corral.Seconds(time.Duration(number("submit", 0, 600)) * time.Second)
		a.Resubmit = resubmit.Policy{Mode: resubmit.Forever, Retries: 1_000_000}
		s.Asks = append(s.Asks, a)
	}
	if broken {
		s.Failures = sim.Failures{
			Task:  sim.FailingTasks(w, 0.2, seed),
			Pilot: sim.FailingPilots(3*time.Hour, seed), Host: sim.FailingHosts(4*time.Hour, seed),
		}
	}
	return s
}

// In any scenario the work completes; no task runs before its parents are done, or without room or a pilot; nothing is
// done twice; and the simulation is deterministic.
func TestProperties(t *testing.T) {
	t.Parallel()
	for _, broken := range []bool{false, true} {
		t.Run(fmt.Sprintf("failures %v", broken), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				s := anyScenario(t, broken)
				tr := sim.Run(s)
				if tr.Ending != sim.Done || tr.Tasks().Done != len(s.Work.Tasks) {
					t.Fatalf("%s at %s (%s): %+v", tr.Ending, tr.Over, tr.Why, tr.Tasks())
				}
				c := checker{t, s, tr, map[int32]execution.Msec{}}
				c.doneOnce()
				c.parentsFirst()
				c.room()
				c.inPilots()
				if diff := cmp.Diff(tr, sim.Run(s), cmpopts.IgnoreUnexported(sim.Trace{})); diff != "" {
					t.Fatalf("another trace of the same scenario:\n%s", diff)
				}
			})
		})
	}
}

type checker struct {
	*rapid.T
	s    sim.Scenario
	tr   *sim.Trace
	done map[int32]execution.Msec
}

func (c checker) results(do func(*execution.Outcome)) {
	for _, r := range c.tr.Records {
		if r.Finished != nil {
			do(r.Finished)
		}
	}
}

// doneOnce checks that a task runs again only if its host failed before the task's result was received.
func (c checker) doneOnce() {
	c.results(func(o *execution.Outcome) {
		if o.Status == execution.Done {
			if _, again := c.done[o.Task]; again {
				c.Fatalf("task %d is done twice", o.Task)
			}
			c.done[o.Task] = o.Ended
		}
	})
}

func (c checker) parentsFirst() {
	c.results(func(o *execution.Outcome) {
		for _, p := range c.s.Work.Graph.Parents(int(o.Task)) {
			if end := c.done[int32(p)]; end == 0 || end > o.Started {
				c.Fatalf("task %d starts at %d, its parent %d is done at %d", o.Task, o.Started, p, end)
			}
		}
	})
}

// room checks that the tasks on a worker never use more resources than the worker has.
func (c checker) room() {
	type change struct {
		at           execution.Msec
		ends         int // sorts ends before starts
		cpus, memory int
	}
	changes := map[string][]change{}
	c.results(func(o *execution.Outcome) {
		if o.Ended > o.Started {
			t := c.s.Work.Tasks[o.Task]
			changes[o.Worker] = append(changes[o.Worker], change{o.Started, 1, t.CPUs, t.MemoryMiB}, change{o.Ended, 0,
				-t.CPUs, -t.MemoryMiB})
		}
	})
	for worker, all := range changes {
		slices.SortFunc(all, func(a, b change) int { return int(2*(a.at-b.at)) + a.ends - b.ends })
		cpus, memory := 0, 0
		for _, x := range all {
			cpus, memory = cpus+x.cpus, memory+x.memory
			if cpus > 4 || memory > 4000 {
				c.Fatalf("worker %s runs tasks of %d cpus and %d MiB", worker, cpus, memory)
			}
		}
	}
}

// inPilots checks that tasks run only while a pilot is ready, and that pilots never hold more cpus than the site has.
func (c checker) inPilots() {
	at := func(m execution.Msec) time.Duration { return m.Time().Sub(c.tr.Begin) }
	c.results(func(o *execution.Outcome) {
		inside := func(h sim.Held) bool { return h.Ready >= 0 && h.Ready <= at(o.Started) && at(o.Ended) <= h.End }
		if !slices.ContainsFunc(c.tr.Pilots, inside) {
			c.Fatalf("task %d runs from %s to %s, when no pilot is ready", o.Task, at(o.Started), at(o.Ended))
		}
	})
	for _, x := range c.s.Sites {
		for _, h := range c.tr.Pilots {
			held := 0
			for _, other := range c.tr.Pilots {
				if other.Site == x.Name && other.Start >= 0 && other.Start <= h.Start && h.Start < other.End {
					held += other.Hosts * other.CPUs
				}
			}
			if h.Start >= 0 && held > x.CPUs {
				c.Fatalf("site %s holds %d cpus at %s, and has %d", x.Name, held, h.Start, x.CPUs)
			}
		}
	}
}

// The results do not depend on the number of processors, and two policies encounter the same runtimes.
func TestRunsDoNotDependOnEachOther(t *testing.T) {
	t.Parallel()
	w := many(t, 60, 12)
	scenario := func(i int) sim.Scenario {
		return sim.Scenario{
			Work: w, Sites: []sim.Site{site(time.Minute)}, Asks: []sim.Ask{pilot(1+i%3, 4, 10*time.Hour)},
			Runtime: sim.Runtimes(w, sim.Lognormal(w, 0.8, 3)),
		}
	}
	took := func(_ int, tr *sim.Trace) map[int32]execution.Msec {
		all := map[int32]execution.Msec{}
		for _, r := range tr.Records {
			if o := r.Finished; o != nil {
				all[o.Task] = o.Ended - o.Started
			}
		}
		return all
	}
	one, four := sim.Runs(t.Context(), 12, 1, scenario, took), sim.Runs(t.Context(), 12, 4, scenario, took)
	if diff := cmp.Diff(one, four); diff != "" {
		t.Errorf("with 1 and with 4 processors:\n%s", diff)
	}
	for i := range one {
		if diff := cmp.Diff(one[0], one[i]); diff != "" {
			t.Errorf("with %d hosts tasks take something else:\n%s", 1+i%3, diff)
		}
	}
}

// Random values have the documented mean and spread, and do not depend on the order of drawing.
func TestChance(t *testing.T) {
	t.Parallel()
	w := many(t, 20_000, 100)
	kind := func(task int) string { return fmt.Sprint("kind ", task%4000) }
	for _, tt := range []struct {
		name     string
		by       sim.Error
		mean, sd float64
	}{
		{"uniform", sim.Uniform(w, 0.5, 1), 1, 0.2887},
		{"lognormal", sim.Lognormal(w, 0.5, 1), 1, 0.5329},
		{"by kind", sim.ByKind(kind, 0.5, 1), 1, 0.5329},
		{"by host", func(i int) float64 {
			return sim.ByHost(0.5, 1)(sim.Host{Site: "a", Pilot: i / 2,
				Number: i % 2})
		}, 1, 0.5329},
	} {
		var sum, squares float64
		for i := range w.Tasks {
			x := tt.by(i)
			sum, squares = sum+x, squares+x*x
		}
		n := float64(len(w.Tasks))
		mean := sum / n
		sd := math.Sqrt(squares/n - mean*mean)
		if math.Abs(mean-tt.mean) > 0.03 || math.Abs(sd-tt.sd) > 0.05 {
			t.Errorf("%s: mean %.3f, standard deviation %.3f, want %.3f and %.3f", tt.name, mean, sd, tt.mean, tt.sd)
		}
		if tt.by(17) != tt.by(17) {
			t.Errorf("%s: drawn again it is something else", tt.name)
		}
	}
	if a, b := sim.ByKind(kind, 0.5, 1)(3), sim.ByKind(kind, 0.5, 1)(4003); a != b {
		t.Errorf("two tasks of a kind err by %g and %g", a, b)
	}
	failed := 0
	for i := range w.Tasks {
		if sim.FailingTasks(w, 0.1, 1)(i, 1) < 1 {
			failed++
		}
	}
	if failed < 1800 || failed > 2200 {
		t.Errorf("%d of 20000 attempts fail, want a tenth", failed)
	}
}

// A control can request missing pilots, and release pilots that it does not need.
func TestControl(t *testing.T) {
	t.Parallel()
	w := many(t, 60, 20)
	var looked []time.Duration
	asked, released := 0, false
	tr := sim.Run(sim.Scenario{Work: w, Sites: []sim.Site{site(30 * time.Second)}, Control: func(now time.Duration,
		v sim.View) []sim.Ask {
		looked = append(looked, now)
		switch {
		case v.QueuedCPUs > 4 && asked < 3:
			asked++
			return []sim.Ask{pilot(1, 4, time.Hour)}
		case now > 3*time.Minute && !released:
			released = true
			return []sim.Ask{{Release: corral.AskDrain, Glidein: 2}, {Release: corral.AskCancel, Glidein: 3}}
		}
		return nil
	}, Every: 20 * time.Second})
	if tr.Ending != sim.Done || len(tr.Pilots) != 3 || !released {
		t.Fatalf("%s (%s) with %d pilots, want done with 3, of which two are released", tr.Ending, tr.Why,
			len(tr.Pilots))
	}
	for i, at := range looked {
		if want := time.Duration(i) * 20 * time.Second; at != want {
			t.Errorf("call %d is at %s, want %s", i, at, want)
		}
	}
	if a, b, c := tr.Pilots[0].Outcome, tr.Pilots[1].Outcome, tr.Pilots[2].Outcome; a != corral.OutcomeRemoved ||
		b != corral.OutcomeDrained || c != corral.OutcomeRemoved {
		t.Errorf("the pilots ended as %s, %s and %s, want removed at the end, drained, removed", a, b, c)
	}
	if tr.Pilots[2].End >= tr.Over || tr.Pilots[1].End >= tr.Over {
		t.Errorf("the pilots ended at %s and %s, the run at %s: want them gone before", tr.Pilots[1].End,
			tr.Pilots[2].End, tr.Over)
	}
}
