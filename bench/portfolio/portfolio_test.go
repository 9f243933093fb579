package portfolio_test

import (
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/bench/portfolio"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/moga"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/workflow/dag"
)

const (
	h             = time.Hour
	su cost.Money = 1_000_000
)

// chain returns a chain of tasks of an hour on two processors.
func chain(t *testing.T, n int) plan.Work {
	t.Helper()
	var w plan.Work
	var edges [][2]int
	for i := range n {
		w.Tasks = append(w.Tasks, plan.Task{ID: "t", Runtime: h, Needs: corral.Resources{CPUs: 2}})
		if i > 0 {
			edges = append(edges, [2]int{i - 1, i})
		}
	}
	var err error
	if w.Graph, err = dag.New(n, edges); err != nil {
		t.Fatal(err)
	}
	return w
}

func busy(processors int, jobs ...queue.Job) *queue.Queue {
	q := queue.New(queue.Machine{Processors: processors, Policy: queue.Conservative}, jobs)
	q.Advance(0, nil)
	return q
}

func job(processors int, length time.Duration) queue.Job {
	return queue.Job{Processors: processors, Requested: length, Runtime: length}
}

// A chain of three tasks behind a running and a waiting job. Jobs start one after another behind both, because no
// others arrive; a pilot with two processors holds them for three hours in a row, and a pilot with four costs twice as
// much for no benefit. A paid reservation starts before the waiting job.
func TestCandidates(t *testing.T) {
	t.Parallel()
	q := busy(4, job(4, h), job(4, 2*h))
	all, err := portfolio.Candidates(chain(t, 3), portfolio.Site{Queue: q, Price: su}, 0, moga.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := map[portfolio.Way]cost.Point{
		portfolio.Jobs: {Makespan: 6 * h, Cost: 6 * su}, portfolio.Pilot: {Makespan: 6 * h, Cost: 6 * su},
		portfolio.Slots: {Makespan: 6 * h, Cost: 6 * su}, portfolio.Prices: {Makespan: 4 * h, Cost: 18 * su},
	}
	seen := map[portfolio.Way]bool{}
	for _, c := range all {
		if !seen[c.Way] && c.Point != want[c.Way] {
			t.Errorf("%s: %+v, want %+v", c.Way, c.Point, want[c.Way])
		}
		if seen[c.Way] && (c.Way != portfolio.Pilot || c.Width != 4 || c.Cost != 12*su || c.Length != 3*h) {
			t.Errorf("and %+v", c)
		}
		seen[c.Way] = true
	}
	if len(seen) != len(want) || all[0].Way != portfolio.Jobs {
		t.Errorf("candidates %+v", all)
	}
	slow, err := portfolio.Candidates(chain(t, 3), portfolio.Site{Queue: q, Price: su, Job: time.Minute}, 0, moga.Options{Seed: 1})
	if err != nil || slow[0].Point != (cost.Point{Makespan: 6*h + 3*time.Minute, Cost: 6 * su}) || slow[1] != all[1] {
		t.Errorf("with a minute more for each job: %+v, %v", slow, err)
	}
	if now := q.Now(); now != 0 || q.Waiting() != 1 {
		t.Error("the queue is another by now")
	}
}

// The candidate with the lowest J is chosen; in case of a tie the fastest, otherwise jobs.
func TestChoose(t *testing.T) {
	t.Parallel()
	all := []portfolio.Candidate{
		{Way: portfolio.Jobs, Point: cost.Point{Makespan: 10 * h, Cost: 10 * su}},
		{Way: portfolio.Pilot, Point: cost.Point{Makespan: 5 * h, Cost: 14 * su}},
		{Way: portfolio.Slots, Point: cost.Point{Makespan: 10 * h, Cost: 10 * su}},
		{Way: portfolio.Prices, Point: cost.Point{Makespan: h, Cost: 100 * su}},
	}
	jobs := all[0].Point
	for alpha, want := range map[plan.Share][2]portfolio.Way{
		0: {portfolio.Prices, portfolio.Pilot}, plan.Whole / 2: {portfolio.Pilot, portfolio.Pilot},
		plan.Whole: {portfolio.Jobs, portfolio.Jobs},
	} {
		if got := portfolio.Choose(all, jobs, alpha); got.Way != want[0] {
			t.Errorf("with %s: %s, want %s", alpha, got.Way, want[0])
		}
		equal := append(all[:3:3], portfolio.Candidate{Way: portfolio.Prices, Point: cost.Point{Makespan: h, Cost: 10 * su}})
		if got := portfolio.Choose(equal, jobs, plan.Whole); got.Way != portfolio.Prices {
			t.Errorf("of two that cost the same the slower is chosen: %s", got.Way)
		}
		like := []portfolio.Candidate{all[0], {Way: portfolio.Pilot, Point: jobs}}
		if got := portfolio.Choose(like, jobs, alpha); got.Way != portfolio.Pilot {
			t.Errorf("jobs that are no better than a pilot are chosen: %s", got.Way)
		}
		if got := portfolio.Choose(all[:2], jobs, alpha); got.Way != want[1] {
			t.Errorf("with %s on a queue alone: %s, want %s", alpha, got.Way, want[1])
		}
	}
}

func TestTooWide(t *testing.T) {
	t.Parallel()
	if _, err := portfolio.Candidates(chain(t, 1), portfolio.Site{Queue: busy(1), Price: su}, 0, moga.Options{Seed: 1}); corral.KindOf(err) != corral.Unsatisfiable {
		t.Errorf("a task of two processors on one: %v", err)
	}
}
