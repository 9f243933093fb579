package cli

// plan --slots --compare recommends how a workflow should obtain its processors at a site: it simulates each way of
// doing so in a copy of the queue (plan/planner/portfolio). A real site sells neither slots nor priced times; for such
// a site the comparison shows the value of a reservation, which an administrator may make.

import (
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/forecast"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/portfolio"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// jobOverhead is the time that a job takes in addition to its task, as measured at an idle Slurm (docs/bench).
const jobOverhead = time.Second

// A way is a line of the comparison.
type way struct {
	Way      portfolio.Way  `json:"way"`
	Width    int            `json:"width,omitempty"` // number of cpus of a pilot
	Makespan corral.Seconds `json:"makespan_s"`
	Cost     cost.Amount    `json:"cost"`
	Weight   float64        `json:"weight"` // weight according to the trade-off, relative to jobs, whose weight is 1
	Best     bool           `json:"best"`
}

// compare prints the makespan and the cost of each way in the queue that the flags specify.
func (v slotVerbs) compare(c *cli.Context, w plan.Work, in forecast.SlotRequest) error {
	for _, flag := range []string{"deadline", "budget", "transfer"} {
		if c.IsSet(flag) {
			return corral.ErrorAt(corral.Invalid, "--"+flag,
				"cannot be used with --compare, which compares at one site, by --tradeoff")
		}
	}
	at := portfolio.Site{Price: hourPrice, Job: jobOverhead}
	var err error
	if at.Queue, err = v.comparedQueue(c); err != nil {
		return err
	}
	all, err := portfolio.Candidates(w, at, in.TradeOff, in.Search)
	if err != nil {
		return err
	}
	// The first candidate, jobs, is the reference for the weights. Its expected makespan is optimistic, because later
	// jobs may overtake it; so the other candidates are not favoured without evidence.
	// A site that sells no reservations can only give jobs and pilots.
	given := slices.DeleteFunc(slices.Clone(all), func(c portfolio.Candidate) bool {
		return c.Way == portfolio.Slots || c.Way == portfolio.Prices
	})
	best := portfolio.Choose(given, all[0].Point, in.TradeOff)
	var ways []way
	for _, c := range all {
		ways = append(ways, way{
			Way: c.Way, Width: c.Width, Makespan: corral.Seconds(c.Makespan),
			Cost:   cost.Amount{Money: c.Cost, Unit: forecast.SlotUnit},
			Weight: portfolio.Weigh(c.Point, all[0].Point, in.TradeOff), Best: c == best,
		})
	}
	return wayTable.list(v.printer, ways)
}

// comparedQueue returns the queue of the site on which the ways are compared. Advertised slots provide no information
// about waiting jobs, and a comparison at two sites would have to name a site for each way.
func (v slotVerbs) comparedQueue(c *cli.Context) (*queue.Queue, error) {
	live := c.StringSlice("site")
	if len(live) != 1 || len(c.StringSlice("offers")) > 0 {
		return nil, corral.ErrorAt(corral.Invalid, "--compare", "requires --slots at one --site")
	}
	cl, err := connect(c)
	if err != nil {
		return nil, err
	}
	return v.readQueue(c, cl, live[0])
}

var wayTable = listing[way]{
	id: func(w way) string { return string(w.Way) },
	columns: []column[way]{
		{"way", func(w way) any { return w.Way }},
		{"cpus", func(w way) any { return unless(w.Width) }},
		{"makespan", func(w way) any { return brief(w.Makespan) }},
		{"cost", func(w way) any { return priced(w.Cost) }},
		{"weight", func(w way) any { return fmt.Sprintf("%.3f", w.Weight) }},
		{"best", func(w way) any {
			if w.Best {
				return "best"
			}
			return ""
		}},
	},
}
