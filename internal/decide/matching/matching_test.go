package matching_test

import (
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// needs returns the needs of a job that requires hardly any memory.
func needs(cpus int, estimate time.Duration) matching.Resources {
	return matching.Resources{Resources: corral.Resources{CPUs: cpus, MemoryMiB: 1}, Time: estimate}
}

// A job of four cpus is first in the queue, but small jobs that fit keep all four cpus from being free.
func TestOvertakenJobGetsASlotAtLast(t *testing.T) {
	t.Parallel()
	c := newCluster()
	s := c.open("s", 4, 4000, time.Hour)
	for range 4 {
		c.push("small", 0, 0, needs(1, 3*time.Second))
	}
	c.match()
	big := c.push("big", 0, 1, needs(4, time.Second))
	for i := range 100 {
		c.push("small", 0, 0, needs(1, 3*time.Second))
		c.now = c.now.Add(time.Second)
		if running := s.Running(); len(running) > 0 {
			c.free(s, running[0])
		}
		if slices.Contains(c.match(), big) {
			if waited := time.Duration(i+1) * time.Second; waited < 10*time.Second {
				t.Errorf("the slot was emptied after %v; small jobs may overtake for 10 s", waited)
			}
			return
		}
	}
	t.Error("the big job never started")
}

// A short job takes the slot that ends first, so that the slot that stays longer is free for a job that needs it,
// however the slots are called and in whatever order they are opened.
func TestSlotsThatEndSoonAreFilledFirst(t *testing.T) {
	t.Parallel()
	for _, ids := range [][2]string{{"a", "b"}, {"b", "a"}} {
		c := newCluster()
		long := c.open(ids[0], 1, 4000, time.Hour)
		soon := c.open(ids[1], 1, 4000, 10*time.Minute)
		brief := c.push("brief", 0, 1, needs(1, 5*time.Minute))
		lasting := c.push("lasting", 0, 0, needs(1, 30*time.Minute))
		c.match()
		if c.holder(brief) != soon || c.holder(lasting) != long {
			t.Errorf("slots %v: the brief job is in %v, the lasting one in %v", ids, c.holder(brief), c.holder(lasting))
		}
	}
}

func TestJobThatFitsNoSlotBlocksNone(t *testing.T) {
	t.Parallel()
	c := newCluster()
	s := c.open("s", 2, 4000, time.Hour)
	c.push("huge", 0, 9, needs(64, time.Second))
	for range 50 {
		c.push("", 0, 0, needs(2, time.Second))
	}
	for range 50 {
		c.now = c.now.Add(time.Second)
		taken := c.match()
		if len(taken) != 1 {
			t.Fatalf("taken %d jobs, want one", len(taken))
		}
		c.free(s, taken[0])
	}
}

// A job of a higher class precedes a job of a lower class with any priority.
func TestClassPrecedesPriority(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.push("ranked", 0, 1e9, needs(1, time.Second))
	first := &job{name: "first", pushed: c.now}
	first.Job = matching.Job[*job]{Value: first, Run: &c.runs[0], Class: 1, Needs: needs(1, time.Second)}
	c.Push(&first.Job)
	c.queued = append(c.queued, first)
	c.open("s", 1, 1000, time.Hour)
	if taken := c.match(); len(taken) == 0 || taken[0] != first {
		t.Errorf("taken %v, want first the job of the higher class", taken)
	}
}

func TestPrefetch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		cpus     int
		queued   int
		estimate time.Duration
		took     time.Duration // time of each earlier job; 0: there were no earlier jobs
		others   int           // number of cpus of other slots
		want     int           // number of waiting jobs
	}{
		{name: "short jobs wait up to the most", cpus: 1, queued: 500, estimate: time.Millisecond, want: 64},
		{name: "for each cpu", cpus: 2, queued: 500, estimate: time.Millisecond, want: 128},
		{name: "up to the work", cpus: 1, queued: 500, estimate: 50 * time.Millisecond, want: 3},
		{name: "long jobs do not wait", cpus: 1, queued: 500, estimate: time.Second, want: 0},
		{name: "measured short jobs do", cpus: 1, queued: 500, estimate: time.Minute, took: time.Millisecond, want: 64},
		{name: "not if measured long", cpus: 1, queued: 500, estimate: time.Millisecond, took: time.Minute, want: 0},
		{name: "only a fair share", cpus: 1, queued: 10, estimate: time.Millisecond, others: 1, want: 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			if tt.took > 0 {
				c.runs[0].Observe(tt.took, tt.estimate, 0)
			}
			for range tt.queued {
				c.push("", 0, 0, needs(1, tt.estimate))
			}
			s := c.open("s", tt.cpus, 1000, time.Hour)
			if tt.others > 0 {
				c.open("t", tt.others, 1000, time.Hour)
			}
			c.match()
			if running, waiting := len(s.Running()), len(c.waiting(s)); running != tt.cpus || waiting != tt.want {
				t.Errorf("%d jobs run and %d wait, want %d and %d", running, waiting, tt.cpus, tt.want)
			}
		})
	}
}

// A long job at the head of the queue must not be starved by short jobs that can be prefetched.
func TestPrefetchDoesNotOvertake(t *testing.T) {
	t.Parallel()
	c := newCluster()
	s := c.open("s", 1, 1000, time.Hour)
	c.push("", 0, 0, needs(1, time.Millisecond))
	c.match()
	first := c.push("first", 0, 1, needs(1, time.Minute))
	for range 100 {
		c.push("", 0, 0, needs(1, time.Millisecond))
	}
	if taken := c.match(); len(taken) != 0 {
		t.Errorf("%d short jobs wait at the worker before the long one", len(taken))
	}
	c.free(s, s.Running()[0])
	if taken := c.match(); len(taken) == 0 || taken[0] != first {
		t.Errorf("the long job did not start first")
	}
}

// A worker's report of its jobs is believed, even if they exceed its capacity.
func TestResetBelievesTheWorker(t *testing.T) {
	t.Parallel()
	c := newCluster()
	s := c.open("s", 2, 1000, time.Hour)
	a := c.push("a", 0, 0, needs(2, time.Second))
	b := c.push("b", 0, 0, needs(1, time.Second))
	w := c.push("w", 0, 0, needs(1, time.Second))
	c.Remove(&c.runs[0])
	s.Reset(c.now, []*matching.Job[*job]{&a.Job, &b.Job}, []*matching.Job[*job]{&w.Job})
	if got := s.Running(); !slices.Equal(got, []*job{a, b}) || s.Free().CPUs != 0 {
		t.Errorf("%d jobs run and %d cpus are free, want both and none", len(got), s.Free().CPUs)
	}
	s.Release(&a.Job, c.now)
	if got := s.Running(); !slices.Equal(got, []*job{b, w}) || s.Free().CPUs != 0 {
		t.Errorf("%d jobs run and %d cpus are free, want the one that waited too", len(got), s.Free().CPUs)
	}
}

// A closed slot takes no jobs, whether all slots are matched or only this one; opening a slot twice counts its cpus
// once.
func TestOnlyOpenSlotsTakeJobs(t *testing.T) {
	t.Parallel()
	c := newCluster()
	s := c.open("s", 1, 1000, time.Hour)
	c.Open(s)
	c.Close(s)
	c.Close(s)
	c.push("", 0, 0, needs(1, time.Second))
	for range c.Match(c.now, s) {
		t.Error("a slot that is closed took a job")
	}
	if taken := c.match(); len(taken) != 0 {
		t.Errorf("%d jobs were taken by no slot", len(taken))
	}
	c.Open(s)
	if taken := c.match(); len(taken) != 1 {
		t.Errorf("%d jobs were taken, want one", len(taken))
	}
}

// A worker receives more jobs when half of its waiting jobs are used up, by number or by work.
func TestPrefetchRefills(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		estimate     time.Duration
		full, refill int // number of waiting jobs, and the largest number with which it gets more
	}{
		{time.Millisecond, 64, 32},
		{50 * time.Millisecond, 3, 1},
		{37500 * time.Microsecond, 4, 2},
	} {
		c := newCluster()
		s := c.open("s", 1, 1000, time.Hour)
		for range 500 {
			c.push("", 0, 0, needs(1, tt.estimate))
		}
		c.match()
		for left := tt.full; left >= tt.refill; left-- {
			if waiting := len(s.Waiting()); waiting != left {
				t.Fatalf("jobs of %s: %d wait, want %d", tt.estimate, waiting, left)
			}
			if left < tt.full {
				if taken := len(c.match()); (taken > 0) != (left == tt.refill) {
					t.Errorf("jobs of %s: with %d that wait the worker got %d", tt.estimate, left, taken)
				}
			}
			c.free(s, s.Running()[0])
		}
	}
}

// Jobs wait behind a job with an estimate of up to 150 ms, until it has run for 300 ms. Time alone may
// change what such a slot takes.
func TestPrefetchBehind(t *testing.T) {
	t.Parallel()
	const short = 150 * time.Millisecond
	for _, tt := range []struct {
		estimate, runs time.Duration // of the running job, before others are queued
		want           bool
	}{
		{short, 0, true},
		{short + 1, 0, false},
		{time.Millisecond, 2 * short, true},
		{time.Millisecond, 2*short + 1, false},
	} {
		c := newCluster()
		c.open("s", 1, 1000, time.Hour)
		c.push("", 0, 0, needs(1, tt.estimate))
		c.match()
		c.now = c.now.Add(tt.runs)
		for range 10 {
			c.push("", 0, 0, needs(1, time.Millisecond))
		}
		if _, changes := c.ChangesAt(c.now); changes != (tt.estimate <= short) {
			t.Errorf("with a job of %s: may change %t", tt.estimate, changes)
		}
		if taken := c.match(); (len(taken) > 0) != tt.want {
			t.Errorf("behind a job of %s that has run for %s %d jobs wait", tt.estimate, tt.runs, len(taken))
		}
	}
}

// A slot behind whose short job a long job blocks the queue is looked at again when the short job has taken too long to
// be short, and when the long job no longer fits the slot's time; until then time alone changes nothing.
func TestBlockedSlotsAreLookedAtRarely(t *testing.T) {
	t.Parallel()
	c := newCluster()
	begin := c.now
	c.open("s", 1, 1000, time.Hour)
	c.push("", 0, 0, needs(1, time.Millisecond))
	c.match()
	c.push("", 0, 0, needs(1, 10*time.Minute))
	var looks []time.Duration
	for len(looks) < 4 {
		c.match()
		at, changes := c.ChangesAt(c.now)
		if !changes {
			break
		}
		looks, c.now = append(looks, at.Sub(begin)), at
	}
	want := []time.Duration{300*time.Millisecond + 1}
	if !slices.Equal(looks, want) {
		t.Errorf("looked at after %v, want %v", looks, want)
	}
}
