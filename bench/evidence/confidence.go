package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/plot"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner"
	"github.com/corral-pilot/corral/plan/plantest"
)

// fresh is the number of outcomes with another seed for checking a confidence; agreement is the permitted difference.
const (
	fresh     = 1000
	agreement = 0.03
)

// confidence makes plans that meet a deadline with a confidence, and checks their predicted confidence in fresh
// outcomes.
func (d desk) confidence(ctx context.Context) error {
	d.say("## Confidence\n")
	t := results{{"tasks", "asked", "reached", fmt.Sprintf("in %d fresh outcomes", fresh), "next cheaper", "error"}}
	rng := rand.New(rand.NewPCG(11, 83))
	var differences []float64
	dots := plot.Series{Name: "plans", Dots: true}
	agree, kept, made := 0, 0, 0
	for made < d.cases {
		m := around(rng, plantest.Layers(rng, 15+rng.IntN(30)))
		soonest, err := planner.Make(m.Problem, plan.Goal{Objective: plan.Makespan}, planner.Options{Context: ctx})
		if err != nil {
			return err
		}
		goal := plan.Goal{Objective: plan.Cost, Confidence: []float64{0.8, 0.9, 0.95}[rng.IntN(3)],
			Deadline: corral.Seconds(float64(soonest.Makespan) * (1.3 + rng.Float64()))}
		pl, err := m.Make(ctx, goal, planner.Options{Seed: 1})
		if err != nil {
			return err
		}
		if !pl.Feasible {
			continue
		}
		made++
		c, next := pl.Confidence, "–"
		again := m.Share(pl, time.Duration(goal.Deadline), fresh, 2)
		if c.NextCheaper != nil {
			next = number(*c.NextCheaper)
		}
		t.add("%d|%g|%.3f|%.3f|%s|%s", len(m.Work.Tasks), c.Asked, c.Reached, again, next, m.Spread)
		differences = append(differences, again-c.Reached)
		dots.At = append(dots.At, plot.XY{X: c.Reached, Y: again})
		if math.Abs(again-c.Reached) <= agreement {
			agree++
		}
		if c.Reached >= c.Asked && (c.NextCheaper == nil || *c.NextCheaper < c.Asked) {
			kept++
		}
	}
	if err := d.show("confidence", t); err != nil {
		return err
	}
	x := intervalOf(differences)
	d.say("\n%d of %d plans say of themselves within 3 points what fresh outcomes say; %d reach what was asked where "+
		"the next cheaper does not. Difference: mean %+.4f ± %.4f (95 %%), standard deviation %.4f.", agree, made, kept,
		x.mean, x.half, x.sd)
	return d.draw("confidence", plot.Chart{Title: "Confidences beside fresh outcomes",
		X: "share that the plan says", Y: "share in 1,000 fresh outcomes", Series: []plot.Series{dots,
			diagonal("equal", 0), diagonal("3 points more", agreement), diagonal("3 points less", -agreement)}})
}

// diagonal returns a line of slope 1 through the relevant shares.
func diagonal(name string, above float64) plot.Series {
	return plot.Series{Name: name, Line: true, At: []plot.XY{{X: 0.8, Y: 0.8 + above}, {X: 1, Y: 1 + above}}}
}
