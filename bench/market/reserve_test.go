package market_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/bench/market"
	"github.com/corral-pilot/corral/plan/planner/slotted"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/slot"
)

// All reservations of a plan are made at the site that offered them, and delay no waiting job. If a job is submitted in
// the meantime, the plan is either reserved unchanged or refused as stale as a whole; then a plan from a new offer can
// be reserved (F6, F7).
func TestReserve(t *testing.T) {
	t.Parallel()
	stale, kept := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var jobs []queue.Job
		for range rapid.IntRange(0, 10).Draw(t, "jobs") {
			length := time.Duration(rapid.IntRange(1, 6).Draw(t, "hours")) * h
			jobs = append(jobs, queue.Job{Processors: rapid.IntRange(1, 8).Draw(t, "processors"), Requested: length,
				Runtime: length})
		}
		q := queue.New(queue.Machine{Processors: 8, Policy: queue.Conservative}, jobs)
		q.Advance(time.Duration(rapid.IntRange(0, 9).Draw(t, "now"))*h, nil)
		site := market.Advertise("hpc", q, su)
		grid := plantest.Grid{Tasks: 8, Levels: 3, Runtime: h, Processors: 3, Parents: 2}
		offer, pieces := planned(t, site, grid)

		if rapid.Bool().Draw(t, "late") {
			q.Submit(queue.Job{Processors: rapid.IntRange(1, 8).Draw(t, "late processors"), Requested: h, Runtime: h})
			q.Advance(q.Now(), nil)
		}
		before := queue.Planned(q)
		now, _ := site.Offer()
		err := site.Reserve(offer, pieces)
		if diff := cmp.Diff(before, queue.Planned(q)); diff != "" {
			t.Fatalf("others are delayed (-before +after):\n%s", diff)
		}
		if err == nil {
			kept++
			return
		}
		stale++
		if _, ok := errors.AsType[*market.StaleError](err); !ok {
			t.Fatalf("Reserve = %v", err)
		}
		after, _ := site.Offer()
		if diff := cmp.Diff(now, after); diff != "" {
			t.Fatalf("a part was reserved (-before +after):\n%s", diff)
		}
		if err := site.Reserve(planned(t, site, grid)); err != nil {
			t.Fatalf("another plan: %v", err)
		}
	})
	t.Logf("%d plans were stale, and %d were not", stale, kept)
	if stale == 0 || kept == 0 {
		t.Errorf("%d plans were stale, and %d were not: too few say nothing", stale, kept)
	}
}

// planned returns a site's offer and the reservations of a plan that uses all of it.
func planned(t *rapid.T, site *market.Advertiser, grid plantest.Grid) (slot.Offer, []slot.Piece) {
	offer, err := site.Offer()
	if err != nil {
		t.Fatal(err)
	}
	w := plantest.Levels(grid, 1)
	s, err := slotted.New(slotted.Problem{Work: w, Sites: []slotted.Site{{Offer: offer}}})
	if err != nil {
		t.Fatal(err)
	}
	p, ok := s.Plan(func(int) bool { return true })
	if !ok {
		t.Fatalf("no plan on %+v", offer)
	}
	var pieces []slot.Piece
	for _, piece := range p.Pieces {
		pieces = append(pieces, piece.Piece)
	}
	return offer, pieces
}
