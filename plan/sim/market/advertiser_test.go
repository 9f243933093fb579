package market_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/plan/sim/market"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/slot"
)

// submitted returns a job that requests exactly its runtime.
func submitted(submit time.Duration, processors int, length time.Duration) queue.Job {
	return queue.Job{Submit: submit, Processors: processors, Requested: length, Runtime: length}
}

func advertise(policy queue.Discipline, jobs ...queue.Job) *market.Advertiser {
	q := queue.New(queue.Machine{Processors: 5, Policy: policy}, jobs)
	q.Advance(0, nil)
	return &market.Advertiser{Name: "hpc", Queue: q, Price: 1_000_000}
}

// The jobs of figure 1 of the thesis leave these slots, level by level. The thesis pins jobs to processors and has a
// slot of one processor from 0 to 3 h and another from 2 h on; here the processor that is free all the time is one
// slot.
func TestOffer(t *testing.T) {
	t.Parallel()
	for _, policy := range queue.Policies {
		s := advertise(policy, submitted(0, 2, 3*h), submitted(0, 4, h), submitted(0, 1, 2*h), submitted(0, 3, 2*h))
		hole := func(start time.Duration, n int, end time.Duration) slot.Slot {
			return slot.Slot{Start: start, Length: end - start, Processors: n, Price: 1_000_000}
		}
		edge := func(start time.Duration, n int) slot.Slot {
			e := hole(start, n, 48*h)
			e.Divisible, e.Extensible = true, true
			return e
		}
		want := []slot.Slot{hole(0, 1, 3*h), edge(0, 1), hole(2*h, 1, 3*h), edge(4*h, 1), edge(6*h, 3)}
		if policy == queue.FCFS { // C waits for B, which waits for A
			want = []slot.Slot{hole(0, 3, 3*h), edge(4*h, 1), edge(5*h, 1), edge(6*h, 3)}
		}
		got, err := s.Offer()
		if diff := cmp.Diff(slot.Offer{Site: "hpc", Processors: 5, Slots: want}, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", policy, err, diff)
		}
	}
}

// The horizon is two days ahead, or five minutes after the last planned end.
func TestHorizon(t *testing.T) {
	t.Parallel()
	got, _ := advertise(queue.Conservative, submitted(0, 4, 100*h)).Offer()
	for _, s := range got.Slots {
		if s.Extensible && s.End() != 100*h+5*time.Minute {
			t.Errorf("%+v ends at %s", s, s.End())
		}
	}
}

// Slots cover exactly the free processors; a slot with an end is neither divisible nor extensible. Reserving one slot,
// or even all of them, delays no job, and reserved processors are not offered again (F5, F6).
func TestNobodyIsDelayed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom([]queue.Discipline{queue.Conservative, queue.FCFS}).Draw(t, "policy")
		var jobs []queue.Job
		for range rapid.IntRange(0, 12).Draw(t, "jobs") {
			jobs = append(jobs, submitted(0, rapid.IntRange(1, 5).Draw(t, "processors"),
				time.Duration(rapid.IntRange(1, 6).Draw(t, "hours"))*h))
		}
		s := advertise(policy, jobs...)
		s.Queue.Advance(time.Duration(rapid.IntRange(0, 10).Draw(t, "now"))*h, nil)
		o, _ := s.Offer()
		planned := queue.Planned(s.Queue)
		adds(t, o, s.Queue)
		for _, one := range o.Slots {
			if one.Divisible != one.Extensible || one.Start < o.At || one.Check() != nil {
				t.Fatalf("%+v is offered at %s", one, o.At)
			}
			again := s.Queue.Clone()
			if !again.Reserve(one.Start, one.End(), one.Processors) {
				t.Fatalf("%+v cannot be reserved", one)
			}
			if diff := cmp.Diff(planned, queue.Planned(again)); diff != "" {
				t.Fatalf("taking %+v delays others (-before +after):\n%s", one, diff)
			}
		}
		for _, one := range o.Slots {
			if !s.Queue.Reserve(one.Start, one.End(), one.Processors) {
				t.Fatalf("all slots together: %+v is taken", one)
			}
		}
		if diff := cmp.Diff(planned, queue.Planned(s.Queue)); diff != "" {
			t.Fatalf("taking all delays others (-before +after):\n%s", diff)
		}
	})
}

// adds checks that the processors of slots add up to the processors that running jobs, waiting jobs and reservations
// leave free.
func adds(t *rapid.T, o slot.Offer, q *queue.Queue) {
	free := queue.Unplanned(q)
	for at := o.At; at < o.At+100*h; at += h {
		n := 0
		for _, s := range o.Slots {
			if s.Start <= at && (s.Extensible || at < s.End()) {
				n += s.Processors
			}
		}
		if n != free.Free(at) {
			t.Fatalf("%d processors are offered at %s, and %d free", n, at, free.Free(at))
		}
	}
}
