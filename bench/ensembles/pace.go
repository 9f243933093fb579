package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan/ensemble"
	"github.com/corral-pilot/corral/plan/planner/dpds"
	"github.com/corral-pilot/corral/plan/planner/spss"
	"github.com/corral-pilot/corral/plan/sim/cloud"
)

// Limits for planning: the time for a hundred workflows of a thousand tasks, the exponent of its growth with the number
// of tasks, and the time for a thousand simulations.
const (
	mostPlanning    = 10 * time.Second
	mostExponent    = 1.5
	mostSimulations = time.Minute
)

// slow says that planning exceeds the limits.
var slow = fmt.Sprintf("planning takes longer than %s, or grows faster than tasks^%g", mostPlanning, mostExponent)

// pace measures how long SPSS takes to plan a hundred workflows of the same size (figure 6.12), and how long a thousand
// simulations of fifty workflows of a hundred tasks take. Published medians are in brackets, in seconds on a machine of
// 2012. It reports whether all values are within the limits. Other load on the machine increases them.
func (d desk) pace() bool {
	published := map[int]float64{200: 28, 400: 126, 600: 294, 800: 505}
	fmt.Fprintln(d.stdout, "\n| 6.12 | tasks of each of 100 workflows | SPSS plans in, s: median, most | "+
		"(published) |\n|---|---|---|---|")
	sizes := []int{200, 400, 600, 800, 1000}
	var x, y []float64
	var last time.Duration
	for _, size := range sizes {
		median, most := d.planning([]string{"sipht", "cybershake"}, size, 100)
		was := ""
		if s, ok := published[size]; ok {
			was = fmt.Sprintf("(%.0f)", s)
		}
		fmt.Fprintf(d.stdout, "| 6.12 | %d | %.2f %.2f | %s |\n", size, median.Seconds(), most.Seconds(), was)
		x, y, last = append(x, math.Log(float64(size))), append(y, math.Log(most.Seconds())), most
	}
	exponent := slope(x, y)
	fmt.Fprintf(d.stdout, "\nplanning time grows as tasks^%.2f\n", exponent)
	simulated := d.simulations(1000)
	fmt.Fprintf(d.stdout, "1,000 simulations of 50 workflows of 100 tasks by DPDS: %.1f s\n", simulated.Seconds())
	return last <= mostPlanning && exponent <= mostExponent && simulated <= mostSimulations
}

// equal returns the given number of workflows of one size.
func (d desk) equal(application string, size, workflows int) (e ensemble.Ensemble) {
	for i := range workflows {
		e = append(e, d.source.take(application, size, i))
	}
	return e
}

// planning returns the median and the maximum duration of planning, over budgets and deadlines from the tightest to the
// most generous.
func (d desk) planning(applications []string, size, workflows int) (median, most time.Duration) {
	var all []time.Duration
	for _, application := range applications {
		e := d.equal(application, size, workflows)
		budgets, deadlines := grid(e, ensemble.Hourly, 4)
		for _, budget := range budgets {
			for _, deadline := range deadlines {
				from := time.Now()
				spss.Default(budget, deadline, ensemble.Hourly).Make(e)
				all = append(all, time.Since(from))
			}
		}
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)-1]
}

// simulations returns the duration of n simulations of DPDS.
func (d desk) simulations(n int) time.Duration {
	var all []ensemble.Ensemble
	for _, application := range []string{"montage", "cybershake", "epigenomics", "ligo", "sipht"} {
		all = append(all, d.equal(application, 100, 50))
	}
	from := time.Now()
	for i := range n {
		e := all[i%len(all)]
		b := e.Bounds(ensemble.Hourly)
		s := cloud.Scenario{Ensemble: e, Deadline: (b.LeastDeadline + b.MostDeadline) / 2, Terms: ensemble.Hourly}
		cloud.Online(s, dpds.Default((b.LeastBudget+b.MostBudget)/2, s.Deadline, s.Terms))
	}
	return time.Since(from)
}

// slope returns the slope of the least-squares line through points.
func slope(x, y []float64) float64 {
	var mx, my, up, down float64
	for i := range x {
		mx, my = mx+x[i]/float64(len(x)), my+y[i]/float64(len(y))
	}
	for i := range x {
		up += (x[i] - mx) * (y[i] - my)
		down += (x[i] - mx) * (x[i] - mx)
	}
	return up / down
}
