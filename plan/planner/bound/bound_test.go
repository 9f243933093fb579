package bound

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow/dag"
)

// bounded returns the lower bound for a workflow with a deadline; 0: none.
func bounded(w plan.Work, deadline time.Duration) int {
	cpus, _ := CPUs(plan.Problem{Work: w}, 0, deadline)
	return cpus
}

// stages returns levels of tasks of equal length; each task depends on all tasks of the previous level.
func stages(t *testing.T, runtime time.Duration, widths ...int) plan.Work {
	t.Helper()
	var w plan.Work
	var edges [][2]int
	first := 0
	for _, width := range widths {
		before := len(w.Tasks)
		for i := range width {
			w.Tasks = append(w.Tasks, plan.Task{Needs: corral.Resources{CPUs: 1}, Runtime: runtime})
			for parent := first; parent < before; parent++ {
				edges = append(edges, [2]int{parent, before + i})
			}
		}
		first = before
	}
	var err error
	if w.Graph, err = dag.New(len(w.Tasks), edges); err != nil {
		t.Fatal(err)
	}
	return w
}

func needing(w plan.Work, cpus int) plan.Work {
	for i := range w.Tasks {
		w.Tasks[i].Needs.CPUs = cpus
	}
	return w
}

func TestLowerBound(t *testing.T) {
	const h = time.Hour
	for _, c := range []struct {
		name     string
		work     plan.Work
		deadline time.Duration
		want     int
	}{
		{"shorter than the critical path", stages(t, h, 5, 1), 2*h - time.Millisecond, 0},
		{"as long as the critical path", stages(t, h, 5, 1, 5), 3 * h, 5},
		{"work ÷ time is 4", stages(t, h, 8), 2 * h, 4},
		{"the second level has two hours", stages(t, h, 1, 8), 3 * h, 4},
		{"the first level has two hours", stages(t, h, 8, 1), 3 * h, 4},
		{"work ÷ time is 4, but no cpu takes two", stages(t, h, 6), 3 * h / 2, 6},
		{"work ÷ time is 4, but a cpu takes two, not three", stages(t, h, 12), 3*h - time.Millisecond, 6},
		{"work ÷ time is 10, but two of 6 are never together", needing(stages(t, h, 10), 6), 6 * h, 12},
		{"one of 6 after the other", needing(stages(t, h, 10), 6), 10 * h, 6},
		{"two of 4 leave 2 of 10", needing(stages(t, h, 9), 4), 4 * h, 12},
	} {
		if got := bounded(c.work, c.deadline); got != c.want {
			t.Errorf("%s: %d cpus, want %d", c.name, got, c.want)
		}
	}
}

func seeded(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
}

func randomJobs(rng *rand.Rand) []job {
	jobs := make([]job, 1+rng.IntN(8))
	for i := range jobs {
		head := rng.Int64N(12)
		jobs[i] = job{need: 1 + rng.Int64N(3), length: 1 + rng.Int64N(6), head: head, latest: head + rng.Int64N(10)}
	}
	return jobs
}

// The windows that are tried include the window with the highest energy per length of all windows.
func TestEnergeticBoundLooksAtAllWindowsThatMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		jobs := randomJobs(seeded(rt))
		var most load
		for from := int64(0); from < 30; from++ {
			for to := from + 1; to <= 30; to++ {
				l := load{interval: interval{from, to}}
				for _, j := range jobs {
					l.energy += j.need * j.within(l.interval)
				}
				if most.length() == 0 || l.energy*most.length() > most.energy*l.length() {
					most = l
				}
			}
		}
		got := energetic(jobs, boundWork)[0]
		if got.energy*most.length() != most.energy*got.length() {
			rt.Fatalf("%+v, want %+v of %+v", got, most, jobs)
		}
		some := energetic(jobs, 0)[0]
		if some.energy*most.length() > most.energy*some.length() {
			rt.Fatalf("of some windows %+v, of all %+v", some, most)
		}
	})
}

// Sizes that sum to at most a whole have images that sum to at most one, and larger sizes do not have smaller images.
func TestScalesAreDualFeasible(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := seeded(rt)
		whole := 1 + rng.Int64N(60)
		var sizes []int64
		for left := whole; left > 0 && len(sizes) < 12; {
			size := 1 + rng.Int64N(left)
			sizes = append(sizes, size)
			left -= size
		}
		for k, s := range scales(sizes, whole) {
			var sum int64
			for _, size := range sizes {
				sum += s.image(size)
			}
			if sum > s.one {
				rt.Fatalf("scale %d maps %v of %d to %d of %d", k, sizes, whole, sum, s.one)
			}
			for size := range whole {
				if s.image(size) > s.image(size+1) {
					rt.Fatalf("scale %d of %d falls after %d", k, whole, size)
				}
			}
		}
	})
}

// tiny returns a workflow of at most six tasks of at most five seconds.
func tiny(t testing.TB, rng *rand.Rand) plan.Work {
	t.Helper()
	var w plan.Work
	var edges [][2]int
	for i := range 1 + rng.IntN(6) {
		w.Tasks = append(w.Tasks, plan.Task{Needs: corral.Resources{CPUs: 1 + rng.IntN(4)},
			Runtime: time.Duration(rng.IntN(6)) * time.Second})
		if i > 0 && rng.IntN(2) == 0 {
			edges = append(edges, [2]int{rng.IntN(i), i})
		}
	}
	var err error
	if w.Graph, err = dag.New(len(w.Tasks), edges); err != nil {
		t.Fatal(err)
	}
	return w
}

// shortest returns the makespan of the shortest schedule of a tiny workflow on a number of cpus. Some order of the
// tasks, each placed as early as it fits, yields this schedule, so all orders are tried.
func shortest(w plan.Work, cpus int) int {
	best := 1 << 30
	start := make([]int, len(w.Tasks))
	seconds := func(i int) int { return int(w.Tasks[i].Runtime / time.Second) }
	var used [64]int
	var put func(done []int, last int)
	put = func(done []int, last int) {
		if last >= best {
			return
		}
		if len(done) == len(w.Tasks) {
			best = last
			return
		}
		for i := range w.Tasks {
			parents := w.Graph.Parents(i)
			if slices.Contains(done, i) || slices.ContainsFunc(parents,
				func(p int) bool { return !slices.Contains(done, p) }) {
				continue
			}
			at := 0
			for _, p := range parents {
				at = max(at, start[p]+seconds(p))
			}
			need := w.Tasks[i].Needs.CPUs
			for k := at; k < at+seconds(i); k++ {
				if used[k]+need > cpus {
					at = k + 1
				}
			}
			start[i] = at
			for k := at; k < at+seconds(i); k++ {
				used[k] += need
			}
			put(append(done, i), max(last, at+seconds(i)))
			for k := at; k < at+seconds(i); k++ {
				used[k] -= need
			}
		}
	}
	put(nil, 0)
	return best
}

// No schedule meets a deadline with fewer cpus than the bound, and the bound is at least work ÷ time.
func TestLowerBoundIsOne(t *testing.T) {
	tight := 0
	rapid.Check(t, func(rt *rapid.T) {
		rng := seeded(rt)
		w := tiny(t, rng)
		path := w.Graph.CriticalPath(w.Runtimes())
		deadline := path + time.Duration(rng.IntN(10))*time.Second
		if deadline == 0 {
			return
		}
		bound := bounded(w, deadline)
		if work := w.CPUTime(); time.Duration(bound) < (work+deadline-1)/deadline {
			rt.Fatalf("%d cpus for %s of work within %s", bound, work, deadline)
		}
		need := 1
		for _, task := range w.Tasks {
			need = max(need, task.Needs.CPUs)
		}
		for shortest(w, need) > int(deadline/time.Second) {
			need++
		}
		if bound > need {
			rt.Fatalf("at least %d cpus for %s, but %d suffice: %+v", bound, deadline, need, w)
		}
		if bound == need {
			tight++
		}
	})
	t.Logf("the bound is reached in %d cases", tight)
}
