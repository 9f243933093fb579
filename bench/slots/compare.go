package main

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/corral-pilot/corral/bench/besteffort"
	"github.com/corral-pilot/corral/bench/greedy"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/moga"
	"github.com/corral-pilot/corral/plan/planner/slotted"
	"github.com/corral-pilot/corral/plan/sim/market"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/slot"
)

// unit is the price of a processor for an hour, so that costs are service units.
const unit cost.Money = 1_000_000

// An instance is a workflow that begins at an instant at some sites.
type instance struct {
	slotted.Problem
	queues []*queue.Queue
}

// at returns the instance of a workflow at sites.
func at(w plan.Work, queues ...*queue.Queue) (instance, error) {
	var sources []slot.Source
	for k, q := range queues {
		sources = append(sources, &market.Advertiser{Name: strconv.Itoa(k + 1), Queue: q, Price: unit})
	}
	sites, err := slotted.Ask(sources...)
	return instance{slotted.Problem{Work: w, Sites: sites}, queues}, err
}

// search returns the front of plans.
func (i instance) search(o moga.Options) (moga.Front, error) {
	s, err := slotted.New(i.Problem)
	if err != nil {
		return nil, err
	}
	return moga.Search(moga.Slots(s), o)
}

// effort returns the cost and makespan of best effort.
func (i instance) effort() (best cost.Point, err error) {
	best.Cost = slotted.Work(i.Work, unit)
	best.Makespan, err = besteffort.Run(i.Problem, i.queues)
	return best, err
}

// A pair holds the results of a plan and of best effort at one instant.
type pair struct {
	plan, best cost.Point
}

// A table holds the pairs of each trade-off.
type table map[plan.Share][]pair

// compare plans a workflow at each instant, and also runs it with best effort.
func compare(cases []instance, o moga.Options, alphas ...plan.Share) (table, error) {
	all := table{}
	for _, c := range cases {
		front, err := c.search(o)
		if err != nil {
			return nil, err
		}
		best, err := c.effort()
		if err != nil {
			return nil, err
		}
		for _, alpha := range alphas {
			all[alpha] = append(all[alpha], pair{published(front, alpha), best})
		}
	}
	return all, nil
}

// published returns the point of a front, which must not be empty, that the thesis chooses: cost and makespan are
// weighed relative to the range of the front (equation 15).
func published(front moga.Front, alpha plan.Share) cost.Point {
	points := front.Points()
	return points[greedy.Choose(points, alpha)]
}

// A ratio is a ratio of means with its 95 % interval.
type ratio struct{ value, low, high float64 }

func (r ratio) String() string { return fmt.Sprintf("%.3f (%.3f–%.3f)", r.value, r.low, r.high) }

// ratioOf returns the ratio of the means of two numbers of each pair. Its variance is that of x − r·y divided by the
// square of y's mean; for about thirty pairs Student's quantile is about 2.05.
func ratioOf(pairs []pair, of func(pair) (x, y float64)) ratio {
	var sx, sy, squares float64
	for _, p := range pairs {
		x, y := of(p)
		sx, sy = sx+x, sy+y
	}
	n, r := float64(len(pairs)), sx/sy
	for _, p := range pairs {
		x, y := of(p)
		squares += (x - r*y) * (x - r*y)
	}
	half := 2.05 * math.Sqrt(squares/(n*max(1, n-1))) / (sy / n)
	return ratio{r, r - half, r + half}
}

func makespans(p pair) (x, y float64) { return p.plan.Makespan.Hours(), p.best.Makespan.Hours() }
func costs(p pair) (x, y float64)     { return p.plan.Cost.Units(), p.best.Cost.Units() }

// spread returns the mean and the standard deviation in hours.
func spread(pairs []pair, of func(pair) time.Duration) string {
	var sum, squares float64
	for _, p := range pairs {
		sum += of(p).Hours()
	}
	mean := sum / float64(len(pairs))
	for _, p := range pairs {
		squares += (of(p).Hours() - mean) * (of(p).Hours() - mean)
	}
	return fmt.Sprintf("%.1f ± %.1f", mean, math.Sqrt(squares/float64(max(1, len(pairs)-1))))
}

func planned(p pair) time.Duration { return p.plan.Makespan }
func bestOf(p pair) time.Duration  { return p.best.Makespan }
