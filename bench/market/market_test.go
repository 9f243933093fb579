package market_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/bench/market"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/slot"
)

const (
	h             = time.Hour
	su cost.Money = 1_000_000
)

func job(processors int, length time.Duration) queue.Job {
	return queue.Job{Processors: processors, Requested: length, Runtime: length}
}

func submitted(_ time.Duration, processors int, length time.Duration) queue.Job {
	return job(processors, length)
}

func site(policy queue.Discipline, processors int, jobs ...queue.Job) *market.Market {
	q := queue.New(queue.Machine{Processors: processors, Policy: policy}, jobs)
	q.Advance(0, nil)
	return market.New("hpc", q, su)
}

func advertise(policy queue.Discipline, jobs ...queue.Job) *market.Advertiser {
	return market.Advertise("hpc", site(policy, 5, jobs...).Queue, su)
}

// starts returns the starts of waiting jobs, planned from scratch.
func starts(q *queue.Queue) []time.Duration {
	o := queue.Look(q)
	return o.Starts(o.Free)
}

// A reservation is made at the quoted fee or not at all.
func TestMarket(t *testing.T) {
	t.Parallel()
	s := site(queue.Conservative, 4, job(4, h), job(4, 2*h))
	trial := s.Trial()
	wanted, _ := s.At(h, h, 1)
	if wanted.Fee != 4*su {
		t.Errorf("the fee is %s: a job of 4 processors waits for an hour more", wanted.Fee)
	}
	if err := s.Reserve(wanted); err != nil {
		t.Fatal(err)
	}
	if all := starts(s.Queue); all[0] != 2*h {
		t.Errorf("what waits is planned for %s", all[0])
	}
	err := s.Reserve(wanted) // three processors are left then, and it delays no further job
	if corral.KindOf(err) != corral.Conflict || errors.As(err, new(*market.StaleError)) {
		t.Errorf("the fee is another by now: %v", err)
	}
	wanted, _ = s.At(h, h, 3)
	if err := errors.Join(s.Reserve(wanted), trial.Reserve(wanted)); corral.KindOf(err) != corral.Conflict {
		t.Errorf("on the site, and on the trial, where it has a fee: %v", err)
	}
	var stale *market.StaleError
	if err := s.Reserve(wanted); corral.KindOf(err) != corral.Conflict || !errors.As(err, &stale) || stale.Free != 0 {
		t.Errorf("of a full machine: %v", err)
	}
	s.Queue.Advance(10*h, nil)
	if s.Queue.Waiting()+s.Queue.Running() > 0 {
		t.Error("jobs wait forever")
	}
}

// Pieces that others have reserved since the offer cannot be reserved; nor can the other pieces of the same request
// (F7).
func TestStale(t *testing.T) {
	t.Parallel()
	s := advertise(queue.Conservative, submitted(0, 2, 3*h), submitted(0, 4, h))
	o, _ := s.Offer()
	hole := slices.IndexFunc(o.Slots, func(s slot.Slot) bool { return !s.Divisible })
	edge := slices.IndexFunc(o.Slots, func(s slot.Slot) bool { return s.Divisible })
	all := []slot.Piece{
		{Slot: edge, Start: o.Slots[edge].Start, Length: h, Processors: 1},
		{Slot: hole, Start: o.Slots[hole].Start, Length: o.Slots[hole].Length, Processors: o.Slots[hole].Processors},
	}
	if why := s.Queue.Submit(submitted(0, 3, h)); why != "" {
		t.Fatal(why)
	}
	s.Queue.Advance(0, nil)
	before, _ := s.Offer()
	err := s.Reserve(o, all)
	stale, ok := errors.AsType[*market.StaleError](err)
	if corral.KindOf(err) != corral.Conflict || !ok {
		t.Fatalf("Reserve = %v", err)
	}
	if after, _ := s.Offer(); !cmp.Equal(before, after) {
		t.Errorf("a part was reserved (-before +after):\n%s", cmp.Diff(before, after))
	}
	if stale.Free >= stale.Piece.Processors {
		t.Errorf("%v", stale)
	}
	err = s.Reserve(before, []slot.Piece{{Slot: 9, Length: h, Processors: 1}})
	if corral.KindOf(err) != corral.Unsatisfiable {
		t.Errorf("a slot that was not offered: %v", err)
	}
}
