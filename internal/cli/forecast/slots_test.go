package forecast_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/forecast"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/planner/moga"
	"github.com/corral-pilot/corral/plan/planner/slotted"
	"github.com/corral-pilot/corral/plan/plantest"
	"github.com/corral-pilot/corral/plan/sim/market"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/sim/workload"
)

// problem returns a random workflow at two simulated sites.
func problem(t *testing.T) slotted.Problem {
	t.Helper()
	p := slotted.Problem{Transfer: func(int, int) time.Duration { return time.Minute },
		Work: plantest.Levels(plantest.Grid{Tasks: 30, Levels: 5, Runtime: time.Hour, Processors: 6, Parents: 2}, 1)}
	for i, name := range []string{"a", "b"} {
		m := queue.Machine{Processors: 64, Policy: queue.Conservative}
		q := queue.States(m, workload.Draw(500, 64, 0.8, uint64(i)), []time.Duration{100 * time.Hour})[0]
		o, err := (&market.Advertiser{Name: name, Queue: q, Price: 2_000_000}).Offer()
		if err != nil {
			t.Fatal(err)
		}
		p.Sites = append(p.Sites, slotted.Site{Offer: o})
	}
	return p
}

// The reservations together cost as much as the booking, within the requested limits; the booking is part of the front,
// its times are relative to the offers, and it is reproducible (F35).
func TestOf(t *testing.T) {
	t.Parallel()
	p := problem(t)
	in := forecast.SlotRequest{TradeOff: plan.Whole / 4, Search: moga.Options{Population: 40, Generations: 3, Seed: 5}}
	b, err := forecast.BookSlots(p, in)
	if err != nil {
		t.Fatal(err)
	}
	var sum cost.Money
	for _, piece := range b.Pieces {
		sum += piece.Cost.Money
		if piece.Start < 0 || piece.Length <= 0 {
			t.Errorf("%+v", piece)
		}
	}
	n := cost.Money(len(b.Pieces)) // each cost is rounded
	if off := sum - b.Cost.Money; off < -n || off > n {
		t.Errorf("pieces cost %s, and the booking %s", sum, b.Cost)
	}
	found := false
	for _, o := range b.Front {
		found = found || o.Makespan == b.Makespan && o.Cost == b.Cost
	}
	if !found || len(b.Schedule) != 30 || b.Used() > b.Offered || b.Cost.Money < b.LeastCost.Money {
		t.Errorf("%+v", b)
	}
	again, _ := forecast.BookSlots(problem(t), in)
	first, _ := json.Marshal(b)
	second, _ := json.Marshal(again)
	if string(first) != string(second) {
		t.Errorf("%s\nand then\n%s", first, second)
	}
	in.TradeOff, in.Deadline = plan.Whole, b.Front[0].Makespan
	if b, err = forecast.BookSlots(p, in); err != nil || b.Makespan != in.Deadline {
		t.Errorf("with a deadline only the fastest meets: %v, %v", b, err)
	}
	in.Deadline = corral.Seconds(time.Second)
	if _, err = forecast.BookSlots(p, in); corral.KindOf(err) != corral.Unsatisfiable {
		t.Errorf("with a deadline of a second: %v", err)
	}
}
