package market_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/sim/market"
	"github.com/corral-pilot/corral/plan/sim/queue"
	"github.com/corral-pilot/corral/plan/slot"
)

const (
	h               = time.Hour
	su   cost.Money = 1_000_000
	none cost.Money = -1 // no price: the slot is not available
)

func job(processors int, length time.Duration) queue.Job {
	return queue.Job{Processors: processors, Requested: length, Runtime: length}
}

func site(policy queue.Discipline, processors int, jobs ...queue.Job) *market.Market {
	q := queue.New(queue.Machine{Processors: processors, Policy: policy}, jobs)
	q.Advance(0, nil)
	return &market.Market{Name: "hpc", Queue: q, Price: su}
}

// starts returns the starts of waiting jobs, planned from scratch.
func starts(q *queue.Queue) []time.Duration {
	o := queue.Look(q)
	return o.Starts(o.Free)
}

// fee returns the price of a start in addition to processor time.
func fee(s *market.Market, start, length time.Duration, processors int) cost.Money {
	one, ok := s.At(start, length, processors)
	if !ok {
		return none
	}
	return one.Fee
}

// The worked example of the thesis (figure 21, table 3), with a time step of an hour: A and B run, R is reserved, C and
// D wait. The thesis pins jobs to processors; a test of package slot covers that case. If processors are counted, D is
// planned to start at 2, like C, and the fees at 2, 3 and 4 are 6, 8 and 8 instead of 6, 8 and 10.
func TestExample(t *testing.T) {
	t.Parallel()
	s := site(queue.Conservative, 5, job(1, 3*h), job(3, 2*h))
	if !s.Queue.Reserve(4*h, 7*h, 1) {
		t.Fatal("R is not reserved")
	}
	for _, j := range []queue.Job{job(2, 4*h), job(2, 5*h)} {
		s.Queue.Submit(j)
	}
	s.Queue.Advance(0, nil)
	want := map[time.Duration]cost.Money{0: none, 2 * h: 6 * su, 3 * h: 8 * su, 4 * h: 8 * su, 6 * h: 0, 7 * h: 0, 8 * h: 0}
	for start, f := range want {
		if got := fee(s, start, 3*h, 2); got != f {
			t.Errorf("2 processors for 3 hours from %s: a fee of %s, want %s", start, got, f)
		}
	}
	var offered []time.Duration
	for _, one := range s.From(0, 3*h, 2) {
		offered = append(offered, one.Start)
		if one.Fee != want[one.Start] || one.Price != su || one.Divisible || one.Extensible || one.Length != 3*h {
			t.Errorf("offered %+v", one)
		}
	}
	if diff := cmp.Diff([]time.Duration{2 * h, 3 * h, 4 * h, 6 * h, 7 * h}, offered); diff != "" {
		t.Errorf("starts (-want +got):\n%s", diff)
	}
}

// Nothing is offered after a reservation without an end, and a reservation that would block a job forever is not
// available.
func TestForEver(t *testing.T) {
	t.Parallel()
	s := site(queue.Conservative, 2, job(1, h), job(2, h))
	if !s.Queue.Reserve(3*h, queue.Open, 1) {
		t.Fatal("not reserved")
	}
	if got := fee(s, h, 2*h, 1); got != none {
		t.Errorf("a fee of %s for the only two hours in which what waits can run", got)
	}
	if got := s.From(0, 2*h, 2); len(got) != 0 {
		t.Errorf("offered %+v: all that is free is needed by what waits", got)
	}
	if got := s.From(0, h, 3); len(got) != 0 {
		t.Errorf("offered %+v of 2 processors", got)
	}
}

// drawn generates a site with running and waiting jobs and an optional reservation. There are few distinct times, so
// that many events coincide.
func drawn(t *rapid.T, policy queue.Discipline) *market.Market {
	number := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
	n := number("processors", 1, 6)
	q := queue.New(queue.Machine{Processors: n, Policy: policy}, nil)
	for range number("jobs", 0, 8) {
		j := job(number("n", 1, n), time.Duration(number("length", 1, 6))*h)
		if rapid.Bool().Draw(t, "inexact") {
			j.Requested += h
		}
		q.Submit(j)
		q.Advance(q.Now()+time.Duration(number("gap", 0, 1))*h, nil)
	}
	if rapid.Bool().Draw(t, "reserved") {
		from := q.Now() + time.Duration(number("from", 0, 8))*h
		q.Claim(from, from+time.Duration(number("for", 1, 4))*h, number("of", 1, n))
	}
	return &market.Market{Name: "hpc", Queue: q, Price: su}
}

// A fee is the price of the resulting waits, and 0 if no job is delayed; the slot is not available if running jobs or
// reservations prevent it. From offers the earliest possible reservation, and a reservation without a fee; each offer
// agrees with At.
func TestPrices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t, rapid.SampledFrom(queue.Policies).Draw(t, "policy"))
		o, now := queue.Look(s.Queue), s.Queue.Now()
		free := o.Free
		n := rapid.IntRange(1, free.Processors()).Draw(t, "wanted")
		length := time.Duration(rapid.IntRange(1, 5).Draw(t, "length")) * h
		from := now + time.Duration(rapid.IntRange(0, 10).Draw(t, "from"))*h
		before := o.Starts(free)
		all := s.From(from, length, n)
		if first, _ := free.Fit(from, length, n); len(all) == 0 || all[0].Start != first {
			t.Fatalf("offered %+v, and the earliest start is %s", all, first)
		}
		if all[len(all)-1].Fee != 0 {
			t.Fatalf("behind all that is planned the fee is %s", all[len(all)-1].Fee)
		}
		anytime := s.From(now, length, n)
		for i, one := range all {
			if at, ok := s.At(one.Start, length, n); !ok || at != one || i > 0 && one.Start <= all[i-1].Start {
				t.Fatalf("offered %+v, and by itself %+v, %t", one, at, ok)
			}
			if one.Start != from && !slices.Contains(anytime, one) {
				t.Fatalf("offered %+v from %s on, and not from now on", one, from)
			}
			trial := s.Queue.Clone()
			if !trial.Claim(one.Start, one.End(), n) {
				t.Fatalf("offered %+v, and it cannot be reserved", one)
			}
			var work time.Duration
			after := starts(trial)
			for k, j := range o.Jobs {
				work += max(0, after[k]-before[k]) * time.Duration(j.Processors)
			}
			if one.Fee != cost.Money(work/h)*su || market.Damage(s.Queue, trial, su) != one.Fee {
				t.Fatalf("the fee is %s, and jobs wait for %s of a processor more", one.Fee, work)
			}
		}
		some := s.Some(from, length, n, rapid.IntRange(1, 6).Draw(t, "most"))
		for i, one := range some {
			if at, ok := s.At(one.Start, length, n); !ok || at != one || (one.Fee == 0) != (i == len(some)-1) {
				t.Fatalf("some are %+v", some)
			}
		}
		if first := slices.IndexFunc(all, func(o slot.Slot) bool { return o.Fee == 0 }); some[len(some)-1].Start > all[first].Start {
			t.Fatalf("some are %+v, and the first without a fee is %+v", some, all[first])
		}
		at := now + time.Duration(rapid.IntRange(-1, 12).Draw(t, "at"))*h
		_, ok := s.At(at, length, n)
		if want := at >= now && free.Least(at, at+length) >= n; ok != want {
			t.Fatalf("at %s it can be had: %t, want %t", at, ok, want)
		}
	})
}

// With conservative backfilling a job keeps its reservation if a claim affects neither this job nor any earlier job.
func TestClaims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(t, queue.Conservative)
		q := s.Queue
		o, now := queue.Look(q), q.Now()
		free := o.Free
		before := o.Starts(free)
		from := now + time.Duration(rapid.IntRange(0, 8).Draw(t, "claimed"))*h
		to, n := from+time.Duration(rapid.IntRange(1, 4).Draw(t, "for"))*h, rapid.IntRange(1, free.Processors()).Draw(t, "n")
		if claimed := q.Claim(from, to, n); claimed != (free.Least(from, to) >= n) {
			t.Fatalf("claimed: %t", claimed)
		} else if !claimed {
			return
		}
		planned := starts(q)
		moved := false
		for i, j := range o.Jobs {
			overlaps := before[i] < to && from < before[i]+j.Requested
			if moved = moved || overlaps || planned[i] != before[i]; !moved && planned[i] != before[i] {
				t.Fatalf("job %d moved from %s to %s", i, before[i], planned[i])
			}
		}
		for i, held := range queue.Planned(q) {
			if held.Start != planned[i] {
				t.Fatalf("job %d is planned for %s, and would be for %s", i, held.Start, planned[i])
			}
		}
		q.Advance(queue.Open, nil)
		if q.Waiting() > 0 {
			t.Fatal("jobs wait forever")
		}
	})
}
