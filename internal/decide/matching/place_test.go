package matching_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// Of the slots in which a job fits, it takes the one that ends first, then the one with the least free resources, then
// the fastest one, then the one with the lowest id, however the slots came to their state.
func TestChoiceOfASlot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster()
		for range rapid.IntRange(1, 12).Draw(t, "slots") {
			c.anySlotAlike(t)
		}
		for range rapid.IntRange(0, 20).Draw(t, "jobs") {
			j := c.anyJobAlike(t)
			want := c.naive(j)
			if c.match(); c.holder(j) != want {
				t.Fatalf("job %+v is in %v, want %v", j.Needs, id(c.holder(j)), id(want))
			}
			if want == nil {
				c.RemoveFunc(j.Run, func(k *job) bool { return k == j })
				c.queued = nil
			}
			if s := c.anySlot(t); rapid.Bool().Draw(t, "a job ends") && len(c.held[s]) > 0 {
				c.free(s, rapid.SampledFrom(c.held[s]).Draw(t, "job"))
			}
		}
	})
}

func (c *cluster) anySlotAlike(t *rapid.T) {
	c.seq++
	s := c.openAt(fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id"), "/", c.seq), rapid.IntRange(1, 4).Draw(t, "cpus"),
		rapid.SampledFrom([]int{1000, 2000}).Draw(t, "memory"),
		time.Duration(rapid.IntRange(1, 3).Draw(t, "hours"))*time.Hour, anySpeed.Draw(t, "speed"))
	if rapid.Bool().Draw(t, "without gpus") {
		c.Close(s)
		s.Host.GPUs = 0
		c.Open(s)
	}
}

func (c *cluster) anyJobAlike(t *rapid.T) *job {
	return c.push("", 0, float64(rapid.IntRange(0, 2).Draw(t, "priority")), matching.Resources{
		Resources: corral.Resources{CPUs: rapid.IntRange(1, 3).Draw(t, "cpus"),
			MemoryMiB: rapid.SampledFrom([]int{0, 500, 1000}).Draw(t, "memory"), GPUs: rapid.IntRange(0, 1).Draw(t, "gpus")},
		Time: time.Duration(rapid.IntRange(20, 150).Draw(t, "minutes")) * time.Minute,
	})
}

// naive returns the slot for a job, or nil.
func (c *cluster) naive(j *job) (best *matching.Slot[*job]) {
	for _, s := range c.slots {
		if _, free := c.rooms(s); !fits(j.Needs, free) {
			continue
		}
		if best == nil {
			best = s
			continue
		}
		a, b := s.Free(), best.Free()
		if cmp.Or(s.EndsAt.Compare(best.EndsAt), a.CPUs-b.CPUs, a.GPUs-b.GPUs, a.MemoryMiB-b.MemoryMiB,
			a.DiskMiB-b.DiskMiB, cmp.Compare(best.Speed.Factor(), s.Speed.Factor()), cmp.Compare(s.ID, best.ID)) < 0 {
			best = s
		}
	}
	return best
}

func id(s *matching.Slot[*job]) string {
	if s == nil {
		return "no slot"
	}
	return s.ID
}

// Matching all slots visits only those that may take jobs. The decisions are the same as if it tried every slot.
func TestMatchingSkipsNoSlotThatMayTakeJobs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c, all := newCluster(), newCluster()
		both := [...]*cluster{c, all}
		t.Repeat(map[string]func(*rapid.T){
			"open": func(t *rapid.T) {
				c.anyOpen(t)
				s := c.slots[len(c.slots)-1]
				all.openAt(s.ID, s.Host.CPUs, s.Host.MemoryMiB, s.EndsAt.Sub(c.now), s.Speed)
			},
			"push": func(t *rapid.T) {
				c.anyPush(t)
				j := c.queued[len(c.queued)-1]
				run := slices.IndexFunc([]int{0, 1, 2}, func(i int) bool { return &c.runs[i] == j.Run })
				all.seq = c.seq - 1
				all.push("", run, j.Priority, j.Needs)
			},
			"end": func(t *rapid.T) {
				i, back := c.anyNumber(t), rapid.Bool().Draw(t, "handed back")
				took := time.Duration(rapid.IntRange(0, 2000).Draw(t, "took")) * time.Millisecond
				n := rapid.IntRange(0, 5).Draw(t, "which")
				only := rapid.Bool().Draw(t, "match its slot")
				for _, c := range both {
					if i < 0 || n >= len(c.held[c.slots[i]]) {
						return
					}
					s := c.slots[i]
					j := c.held[s][n]
					if c.free(s, j); back {
						c.restore(j)
					} else {
						j.Run.Observe(took, j.Needs.Time, s.Speed)
					}
					if only {
						c.matchOf(s)
					}
				}
			},
			"lose": func(t *rapid.T) {
				if i := c.anyNumber(t); i >= 0 {
					for _, c := range both {
						c.leave(c.slots[i])
					}
				}
			},
			"remove": func(t *rapid.T) {
				n := rapid.IntRange(0, 3).Draw(t, "which")
				for _, c := range both {
					of := func(j *job) bool { return j.seq%4 == n && j.Run == &c.runs[0] }
					c.RemoveFunc(&c.runs[0], of)
					c.queued = slices.DeleteFunc(c.queued, of)
				}
			},
			"pass": func(t *rapid.T) {
				c.now = c.now.Add(time.Duration(rapid.IntRange(1, 20000).Draw(t, "ms")) * time.Millisecond)
				all.now = c.now
			},
			"match": func(t *rapid.T) {
				c.match()
				if len(all.slots) > 0 {
					all.matchOf(all.slots...)
				}
			},
			"": func(t *rapid.T) {
				for i, s := range c.slots {
					if a, b := numbers(c.held[s]), numbers(all.held[all.slots[i]]); !slices.Equal(a, b) {
						t.Fatalf("slot %s has jobs %v, want %v", s.ID, a, b)
					}
				}
			},
		})
	})
}

// A slot that was kept free for a job takes other jobs as soon as that job has left the queue.
func TestSlotIsNoLongerKeptFree(t *testing.T) {
	t.Parallel()
	c := newCluster()
	s := c.open("s", 2, 4000, time.Hour)
	first, second := c.push("", 0, 0, needs(1, time.Minute)), c.push("", 0, 0, needs(1, time.Minute))
	c.match()
	big := c.push("big", 1, 1, needs(2, time.Minute))
	c.push("overtakes", 0, 0, needs(1, time.Minute))
	c.free(s, first)
	c.match()
	last := c.push("last", 0, 0, needs(1, time.Minute))
	c.now = c.now.Add(10 * time.Second)
	c.free(s, second)
	if c.match(); c.holder(last) != nil {
		t.Fatal("the slot is not kept free")
	}
	if gone := c.Remove(big.Run); len(gone) != 1 {
		t.Fatal(gone)
	}
	if c.match(); c.holder(last) != s {
		t.Error("the slot is still kept free")
	}
}

// anyNumber returns the number of a slot, or -1 if there are none.
func (c *cluster) anyNumber(t *rapid.T) int {
	return rapid.IntRange(min(0, len(c.slots)-1), len(c.slots)-1).Draw(t, "slot")
}

// matchOf matches some slots, and tries each.
func (c *cluster) matchOf(only ...*matching.Slot[*job]) {
	for s, taken := range c.Match(c.now, only...) {
		c.held[s] = append(c.held[s], taken...)
		c.queued = slices.DeleteFunc(c.queued, func(j *job) bool { return slices.Contains(taken, j) })
	}
}

func numbers(jobs []*job) []int {
	all := make([]int, len(jobs))
	for i, j := range jobs {
		all[i] = j.seq
	}
	return all
}
