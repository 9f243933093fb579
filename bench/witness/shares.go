package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/planner/montecarlo"
)

// A printed is a share that a plan prints, beside the share of the player's draws.
type printed struct {
	problem      int
	kind, what   string
	draws        int // of the plan
	plan, player float64
}

// enough is the number of a plan's draws from which on its shares are compared.
const enough = 1000

// near is how far a share may be from that of fresh outcomes.
const near = 0.03

// printed makes a plan of a problem whose waits are random, and compares each of its shares. It returns none if the
// problem has no plan, or if its shares are of too few draws.
func (b bench) printed(ctx context.Context, dir string, number int) (all []printed, err error) {
	p, kind, err := b.source.problem(number)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(uint64(number), 's'))
	p.Present = nil // the player does not draw what is left of tasks that run
	for i := range p.Sites {
		vary(&p.Sites[i])
	}
	file := filepath.Join(dir, "workflow.json")
	if err := writeWorkflow(file, p.Work); err != nil {
		return nil, err
	}
	m := montecarlo.Model{Problem: p, Spread: montecarlo.DefaultSpread}
	soonest, err := planner.Make(p, plan.Goal{Objective: plan.Makespan}, planner.Options{Context: ctx})
	if err != nil || !soonest.Feasible {
		return nil, err
	}
	goal := plan.Goal{Objective: plan.Cost, Deadline: soonest.Makespan * corral.Seconds(11+rng.IntN(15)) / 10}
	if rng.IntN(2) == 0 {
		goal.Confidence = []float64{0.5, 0.8, 0.9, 0.95}[rng.IntN(4)]
	}
	pl, err := m.Make(ctx, goal, planner.Options{Seed: uint64(number)})
	if err != nil || !pl.Feasible {
		return nil, err
	}
	odds := m.Odds(ctx, pl, uint64(number))
	if odds == nil || odds.Outcomes < enough {
		return nil, ctx.Err()
	}
	x, err := b.ask(ctx, dir, file, pl, "-estimates", "plan", "-error", fmt.Sprint(m.Spread.Size),
		"-draw-waits", "-draws", strconv.Itoa(b.draws), "-seed", strconv.Itoa(1_000_000+number))
	if err != nil {
		return nil, err
	}
	add := func(what string, plan, player float64) {
		all = append(all, printed{number, kind, what, odds.Outcomes, plan, player})
	}
	add("finishes", odds.Finishes.Share, x.Draws.Finished.Share)
	if odds.InTime != nil && x.Draws.InTime != nil {
		add("within the deadline", odds.InTime.Share, x.Draws.InTime.Share)
	}
	if pl.Confidence != nil && x.Draws.InTime != nil {
		add("confidence", pl.Confidence.Reached, x.Draws.InTime.Share)
	}
	return all, nil
}

// vary makes a site's waits random: lognormal, with the planned wait as the median. Plans record waits by quantiles at
// equal distances, so that the player draws from the same distribution.
func vary(s *plan.Site) {
	median := s.Wait
	of := func(shape plan.Shape) plan.Spread {
		return plan.NewSpread(func(share float64) time.Duration {
			z := math.Sqrt2 * math.Erfinv(2*min(max(share, 0.005), 0.995)-1)
			return time.Duration(float64(median(shape)) * math.Exp(0.7*z)).Round(time.Millisecond)
		})
	}
	s.Waits = func(shape plan.Shape, share float64) time.Duration { return of(shape).At(share) }
}

// compare prints how many plans print only shares that are near those of the player.
func (b bench) compare(all []printed) error {
	if len(all) == 0 {
		return nil
	}
	off := map[int]float64{}
	for _, p := range all {
		d := math.Abs(p.plan - p.player)
		off[p.problem] = max(off[p.problem], d)
		if d > near {
			fmt.Fprintf(b.stdout, "%s: %s %.3f of %d outcomes, %.3f of the player's\n", name(p.problem, p.kind), p.what,
				p.plan, p.draws, p.player)
		}
	}
	good := 0
	for _, d := range off {
		if d <= near {
			good++
		}
	}
	fmt.Fprintf(b.stdout, "%d of %d plans print shares within %g points of %d fresh outcomes\n", good, len(off),
		100*near, b.draws)
	if float64(good) < 0.95*float64(len(off)) {
		return corral.Errorf(corral.Failed, "only %d of %d plans print true shares", good, len(off))
	}
	return nil
}
