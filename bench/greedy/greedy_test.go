package greedy_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/bench/greedy"
	"github.com/corral-pilot/corral/bench/market"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/slotted"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/slot"
	"github.com/corral-pilot/corral/workflow/dag"
)

const (
	h             = time.Hour
	su cost.Money = 1_000_000
)

type task struct {
	processors int
	runtime    time.Duration
	parents    []int
}

func work(t rapid.TB, tasks ...task) plan.Work {
	var w plan.Work
	var edges [][2]int
	for i, one := range tasks {
		w.Tasks = append(w.Tasks, plan.Task{ID: fmt.Sprint(i), Runtime: one.runtime,
			Needs: corral.Resources{CPUs: one.processors}})
		for _, p := range one.parents {
			edges = append(edges, [2]int{p, i})
		}
	}
	var err error
	if w.Graph, err = dag.New(len(tasks), edges); err != nil {
		t.Fatal(err)
	}
	return w
}

// sites returns queues, which must be at the same instant, as markets and as sites of a problem.
func sites(queues ...*queue.Queue) (places []slotted.Site, markets []market.Seller) {
	for i, q := range queues {
		places = append(places, slotted.Site{Offer: slot.Offer{Site: fmt.Sprint(i), At: q.Now(), Processors: q.Free().Processors()}})
		markets = append(markets, market.New(fmt.Sprint(i), q, su))
	}
	return places, markets
}

func busy(processors int, jobs ...queue.Job) *queue.Queue {
	q := queue.New(queue.Machine{Processors: processors, Policy: queue.Conservative}, jobs)
	q.Advance(0, nil)
	return q
}

func job(processors int, length time.Duration) queue.Job {
	return queue.Job{Processors: processors, Requested: length, Runtime: length}
}

// A chain of two tasks on a machine where one job runs and another waits: the chain runs before the waiting job for a
// fee, or after it without a fee.
func TestTradeOff(t *testing.T) {
	t.Parallel()
	for tradeoff, want := range map[plan.Share]struct {
		makespan   time.Duration
		cost, fees cost.Money
	}{
		0:          {4 * h, 10 * su, 6 * su}, // the waiting job starts three hours later
		plan.Whole: {6 * h, 4 * su, 0},
	} {
		places, markets := sites(busy(2, job(2, h), job(2, 2*h)))
		p := slotted.Problem{Sites: places, Work: work(t, task{2, h, nil}, task{1, 2 * h, []int{0}})}
		got, err := greedy.Make(p, markets, 0, tradeoff)
		if err != nil || got.Makespan != want.makespan || got.Cost != want.cost || got.Fees != want.fees {
			t.Errorf("with %s: %+v, %v; want %+v", tradeoff, got, err, want)
		}
	}
}

// A task is placed where it ends first: if the transfer takes a long time, this is the site of its data, even though
// the task has to wait there.
func TestTransfer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		way  time.Duration
		site int
		end  time.Duration
	}{{h, 1, 5 * h}, {4 * h, 0, 7 * h}} {
		first, second := busy(1), busy(1)
		if !first.Claim(h, 4*h, 1) || !second.Claim(0, h, 1) {
			t.Fatal("not claimed")
		}
		places, markets := sites(first, second)
		p := slotted.Problem{Sites: places, Work: work(t, task{1, h, nil}, task{1, 3 * h, []int{0}}),
			Transfer: func(int, int) time.Duration { return c.way }}
		got, err := greedy.Make(p, markets, 0, 0)
		if err != nil || got.Schedule[0].Site != 0 || got.Schedule[1].Site != c.site || got.Makespan != c.end {
			t.Errorf("with a way of %s: %+v, %v", c.way, got.Schedule, err)
		}
	}
}

// A task without a duration, such as a task that only joins others, runs where its parents' data is.
func TestNoTime(t *testing.T) {
	t.Parallel()
	first, second := busy(1), busy(1)
	if !first.Claim(0, 100*h, 1) {
		t.Fatal("not claimed")
	}
	places, markets := sites(first, second)
	p := slotted.Problem{Sites: places, Work: work(t, task{1, h, nil}, task{1, 0, []int{0}}),
		Transfer: func(int, int) time.Duration { return 5 * h }}
	got, err := greedy.Make(p, markets, 0, 0)
	if err != nil || got.Makespan != h || got.Schedule[1].Site != 1 || len(got.Taken) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	places, markets := sites(busy(2))
	for _, c := range []struct {
		task     task
		tradeoff plan.Share
		want     corral.Kind
	}{{task{1, h, nil}, 2 * plan.Whole, corral.Invalid}, {task{3, h, nil}, 0, corral.Unsatisfiable}} {
		_, err := greedy.Make(slotted.Problem{Sites: places, Work: work(t, c.task)}, markets, 0, c.tradeoff)
		if corral.KindOf(err) != c.want {
			t.Errorf("%+v: %v, want %s", c, err, c.want)
		}
	}
}

// A plan's tasks start once their parents have ended and their data has arrived, each where its reservation is. All
// reservations are available at the sites, in their order and for the stated fees. With the lowest cost there are no
// fees, so the plan costs the same as best effort.
func TestPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
		var queues []*queue.Queue
		widest := 0
		for range number("sites", 1, 3) {
			n := number("processors", 1, 5)
			var jobs []queue.Job
			for range number("jobs", 0, 6) {
				jobs = append(jobs, job(number("n", 1, n), time.Duration(number("length", 1, 6))*h))
			}
			queues, widest = append(queues, busy(n, jobs...)), max(widest, n)
		}
		var tasks []task
		for i := range number("tasks", 1, 6) {
			one := task{number("cpus", 1, widest), time.Duration(number("runtime", 0, 4)) * h, nil}
			for p := range i {
				if number("child", 0, 2) == 0 {
					one.parents = append(one.parents, p)
				}
			}
			tasks = append(tasks, one)
		}
		tradeoff := plan.Share(number("tradeoff", 0, 4)) * plan.Whole / 4
		way := time.Duration(number("way", 0, 2)) * h / 2
		places, markets := sites(queues...)
		p := slotted.Problem{Sites: places, Work: work(t, tasks...), Transfer: func(int, int) time.Duration { return way }}
		got, err := greedy.Make(p, markets, 0, tradeoff)
		if err != nil {
			t.Fatal(err)
		}
		end := time.Duration(0)
		for i, r := range got.Schedule {
			end = max(end, r.End)
			if r.End-r.Start != tasks[i].runtime {
				t.Fatalf("task %d runs from %s to %s", i, r.Start, r.End)
			}
			for _, parent := range tasks[i].parents {
				ready := got.Schedule[parent].End
				if got.Schedule[parent].Site != r.Site {
					ready += way
				}
				if r.Start < ready {
					t.Fatalf("task %d starts at %s, and its data is there at %s", i, r.Start, ready)
				}
			}
		}
		if got.Makespan != end {
			t.Fatalf("a makespan of %s, and all end by %s", got.Makespan, end)
		}
		paid, fees := slotted.Work(p.Work, su), cost.Money(0)
		for _, one := range got.Taken {
			r := got.Schedule[one.Task]
			if r.Site != one.Site || r.Start != one.Start || r.End != one.End() || one.Processors != tasks[one.Task].processors {
				t.Fatalf("task %d runs %+v, and has %+v", one.Task, r, one)
			}
			if err := markets[one.Site].Reserve(one.Slot); err != nil {
				t.Fatalf("task %d: %v", one.Task, err)
			}
			fees += one.Fee
		}
		if got.Fees != fees || got.Cost != paid+fees || tradeoff == plan.Whole && fees > 0 {
			t.Fatalf("%+v costs, with %s of fees; processor time is %s", got.Point, fees, paid)
		}
	})
}
