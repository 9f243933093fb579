package matching_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

const margin = 500 * time.Millisecond

var start = time.Unix(1e9, 0)

// A job represents a caller's type, which embeds the job that is matched.
type job struct {
	matching.Job[*job]
	name   string
	pushed time.Time
	seq    int
}

// A cluster is a Matcher together with its caller's data: which jobs are queued, and which slot holds which jobs.
type cluster struct {
	matching.Matcher[*job]
	now    time.Time
	seq    int
	runs   [3]matching.Run[*job]
	slots  []*matching.Slot[*job]
	queued []*job
	held   map[*matching.Slot[*job]][]*job
}

func newCluster() *cluster {
	return &cluster{
		Matcher: matching.Matcher[*job]{StartMargin: margin}, now: start, held: map[*matching.Slot[*job]][]*job{},
	}
}

func (c *cluster) push(name string, run int, priority float64, needs matching.Resources) *job {
	c.seq++
	j := &job{name: name, pushed: c.now, seq: c.seq}
	j.Job = matching.Job[*job]{Value: j, Run: &c.runs[run], Priority: priority, Needs: needs}
	c.Push(&j.Job)
	c.queued = append(c.queued, j)
	return j
}

// open opens a slot on a host with 2 GPUs and 1000 MiB of disk.
func (c *cluster) open(id string, cpus, memory int, lasts time.Duration) *matching.Slot[*job] {
	return c.openAt(id, cpus, memory, lasts, 0)
}

// openAt is like open, for a host with the given speed.
func (c *cluster) openAt(id string, cpus, memory int, lasts time.Duration, speed corral.Speed) *matching.Slot[*job] {
	s := &matching.Slot[*job]{
		ID: id, Host: corral.Resources{CPUs: cpus, MemoryMiB: memory, GPUs: 2, DiskMiB: 1000}, EndsAt: c.now.Add(lasts),
		Speed: speed,
	}
	c.slots = append(c.slots, s)
	c.Open(s)
	return s
}

// match matches all slots once and returns the jobs that were taken.
func (c *cluster) match() []*job {
	var all []*job
	for s, taken := range c.Match(c.now) {
		c.held[s] = append(c.held[s], taken...)
		all = append(all, taken...)
	}
	c.queued = slices.DeleteFunc(c.queued, func(j *job) bool { return slices.Contains(all, j) })
	return all
}

// free removes a job from its slot.
func (c *cluster) free(s *matching.Slot[*job], j *job) {
	s.Release(&j.Job, c.now)
	c.held[s] = slices.DeleteFunc(c.held[s], func(k *job) bool { return k == j })
}

// holder returns the slot that has j.
func (c *cluster) holder(j *job) *matching.Slot[*job] {
	for s, jobs := range c.held {
		if slices.Contains(jobs, j) {
			return s
		}
	}
	return nil
}

func (c *cluster) restore(j *job) {
	c.Restore(&j.Job)
	c.queued = append(c.queued, j)
}

func (c *cluster) waiting(s *matching.Slot[*job]) []*job {
	running := s.Running()
	return slices.DeleteFunc(slices.Clone(c.held[s]), func(j *job) bool { return slices.Contains(running, j) })
}

// rooms returns the slot's total and free resources.
func (c *cluster) rooms(s *matching.Slot[*job]) (whole, free matching.Resources) {
	whole = matching.Resources{Resources: s.Host, Time: s.Speed.Within(s.EndsAt.Sub(c.now) - margin)}
	free = whole
	for _, j := range s.Running() {
		free.Resources = free.Minus(j.Needs.Resources)
	}
	return whole, free
}

func fits(needs, room matching.Resources) bool {
	return needs.CPUs <= room.CPUs && needs.MemoryMiB <= room.MemoryMiB && needs.GPUs <= room.GPUs &&
		needs.DiskMiB <= room.DiskMiB && needs.Time <= room.Time
}

// The moves of the properties, each with arbitrary arguments.

func (c *cluster) anyPush(t *rapid.T) {
	ms := rapid.SampledFrom([]int64{1, 3, 40, 900, 1000, 1010, 60e3, 61e3, 500e3}).Draw(t, "ms")
	run, priority := rapid.IntRange(0, 2).Draw(t, "run"), rapid.IntRange(0, 4).Draw(t, "priority")
	c.push("", run, float64(priority), matching.Resources{
		Resources: corral.Resources{
			CPUs:      rapid.IntRange(1, 6).Draw(t, "cpus"),
			MemoryMiB: rapid.SampledFrom([]int{0, 1, 100, 1000, 1001, 1050, 3000}).Draw(t, "memory"),
			GPUs:      rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(t, "gpus"),
			DiskMiB:   rapid.SampledFrom([]int{0, 0, 0, 500, 510, 1000, 1001}).Draw(t, "disk"),
		},
		Time: time.Duration(ms) * time.Millisecond,
	})
}

func (c *cluster) anyOpen(t *rapid.T) {
	c.seq++
	c.openAt(fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id"), "/", c.seq), rapid.IntRange(1, 5).Draw(t, "cpus"),
		rapid.SampledFrom([]int{500, 1000, 1001, 4000}).Draw(t, "memory"),
		time.Duration(rapid.IntRange(1, 400).Draw(t, "left"))*time.Second, anySpeed.Draw(t, "speed"))
}

var anySpeed = rapid.SampledFrom([]corral.Speed{0, 0, 1, 0.5, 0.3})

func (c *cluster) anySlot(t *rapid.T) *matching.Slot[*job] {
	if len(c.slots) == 0 {
		return nil
	}
	return rapid.SampledFrom(c.slots).Draw(t, "slot")
}

// anyEnd ends a running or waiting job; the job is returned to the queue or has a result.
func (c *cluster) anyEnd(t *rapid.T) {
	s := c.anySlot(t)
	if s == nil || len(c.held[s]) == 0 {
		return
	}
	j := rapid.SampledFrom(c.held[s]).Draw(t, "job")
	c.free(s, j)
	if rapid.Bool().Draw(t, "handed back") {
		c.restore(j)
	} else if j.Run != &c.runs[0] { // the estimates of run 0 are believed
		j.Run.Observe(time.Duration(rapid.IntRange(0, 2000).Draw(t, "took"))*time.Millisecond, j.Needs.Time, s.Speed)
	}
}

func (c *cluster) anyRecall(t *rapid.T) {
	if s := c.anySlot(t); s != nil {
		overdue := s.Overdue(c.now)
		if waiting := c.waiting(s); len(overdue) > 0 && !slices.Equal(overdue, waiting) {
			t.Fatalf("%d jobs are overdue, but %d wait", len(overdue), len(waiting))
		}
		for _, j := range overdue {
			c.free(s, j)
			c.restore(j)
		}
	}
}

// anyLoss closes a slot; it either returns with its jobs, or they are queued again.
func (c *cluster) anyLoss(t *rapid.T) {
	s := c.anySlot(t)
	if s == nil {
		return
	}
	c.Close(s)
	if rapid.Bool().Draw(t, "comes back") {
		var running, waiting []*matching.Job[*job]
		for _, j := range s.Running() {
			running = append(running, &j.Job)
		}
		for _, j := range c.waiting(s) {
			waiting = append(waiting, &j.Job)
		}
		s.Reset(c.now, running, waiting)
		c.Open(s)
		return
	}
	for _, j := range c.held[s] {
		c.restore(j)
	}
	delete(c.held, s)
	c.slots = slices.DeleteFunc(c.slots, func(o *matching.Slot[*job]) bool { return o == s })
}

func (c *cluster) anyRemoval(t *rapid.T) {
	run := &c.runs[rapid.IntRange(0, 2).Draw(t, "run")]
	of := func(j *job) bool { return j.Run == run }
	var gone []*job
	if kept := rapid.Int64Range(0, 3).Draw(t, "kept"); kept == 0 {
		gone = c.Remove(run)
	} else {
		some := func(j *job) bool { return int64(j.seq)%4 != kept }
		of = func(j *job) bool { return j.Run == run && some(j) }
		gone = c.RemoveFunc(run, some)
	}
	if i := slices.IndexFunc(gone, func(j *job) bool { return !of(j) }); i >= 0 {
		t.Fatalf("job %d of another run was removed", gone[i].seq)
	}
	before := len(c.queued)
	c.queued = slices.DeleteFunc(c.queued, of)
	if len(gone) != before-len(c.queued) {
		t.Fatalf("%d jobs were removed, want %d", len(gone), before-len(c.queued))
	}
}

// anyMatch matches all slots and checks the jobs that they received.
func (c *cluster) anyMatch(t *rapid.T) {
	queued := slices.Clone(c.queued)
	for _, j := range c.match() {
		if !slices.Contains(queued, j) {
			t.Fatalf("job %d was matched and not queued", j.seq)
		}
		queued = slices.DeleteFunc(queued, func(k *job) bool { return k == j })
		s := c.holder(j)
		whole, _ := c.rooms(s)
		if !fits(j.Needs, whole) {
			t.Fatalf("job %+v was given to a slot that has %+v", j.Needs, whole)
		}
		waiting := c.waiting(s)
		budget := 150 * time.Millisecond * time.Duration(s.Host.CPUs)
		if slices.Contains(waiting, j) && j.Run == &c.runs[0] && s.Speed.Takes(j.Needs.Time) > budget {
			t.Fatalf("a job of %v waits at a worker", j.Needs.Time)
		}
		if len(waiting) > 64*s.Host.CPUs {
			t.Fatalf("%d jobs wait at a worker of %d cpus", len(waiting), s.Host.CPUs)
		}
	}
	c.checkNoneIdle(t)
}

// check tests the invariants that always hold.
func (c *cluster) check(t *rapid.T) {
	if c.Queued() != len(c.queued) {
		t.Fatalf("%d jobs are queued, want %d", c.Queued(), len(c.queued))
	}
	for _, s := range c.slots {
		whole, free := c.rooms(s)
		if min(free.CPUs, free.MemoryMiB, free.GPUs, free.DiskMiB) < 0 || s.Free() != free.Resources {
			t.Fatalf("a slot with %+v has %+v free, and says %+v", whole, free, s.Free())
		}
		for _, j := range s.Running() {
			if !slices.Contains(c.held[s], j) {
				t.Fatalf("job %d runs where it is not held", j.seq)
			}
		}
	}
}

// checkNoneIdle tests an invariant after a match: no job is queued that a slot could start, unless jobs wait at the
// slot or it is kept free for a job that could run there and has been queued for ten seconds.
func (c *cluster) checkNoneIdle(t *rapid.T) {
	for _, s := range c.slots {
		whole, free := c.rooms(s)
		kept := slices.ContainsFunc(c.queued, func(j *job) bool {
			return fits(j.Needs, whole) && !fits(j.Needs, free) && c.now.Sub(j.pushed) >= 10*time.Second
		})
		if kept || len(c.waiting(s)) > 0 {
			continue
		}
		for _, j := range c.queued {
			if fits(j.Needs, free) {
				t.Fatalf("job %+v is queued while %+v is free", j.Needs, free)
			}
		}
	}
}

func TestMatchingProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster()
		t.Repeat(map[string]func(*rapid.T){
			"push": c.anyPush, "open": c.anyOpen, "end": c.anyEnd, "recall": c.anyRecall, "lose": c.anyLoss,
			"remove": c.anyRemoval, "match": c.anyMatch, "": c.check,
			"pass": func(t *rapid.T) {
				c.now = c.now.Add(time.Duration(rapid.IntRange(1, 20000).Draw(t, "ms")) * time.Millisecond)
			},
		})
	})
}
