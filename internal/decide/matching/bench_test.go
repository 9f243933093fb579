package matching_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/matching"
)

// oneShape returns the needs of all jobs of a run with a single step; manyShapes returns the needs of the jobs of a
// mixed load, where no two jobs are alike.
func oneShape(*rand.Rand) matching.Resources {
	return matching.Resources{Resources: corral.Resources{CPUs: 1, MemoryMiB: 1000}, Time: time.Minute}
}

func manyShapes(r *rand.Rand) matching.Resources {
	return matching.Resources{
		Resources: corral.Resources{CPUs: 1 + r.IntN(4), MemoryMiB: 100 << r.IntN(6)},
		Time:      time.Duration(float64(time.Second) * math.Pow(3600, r.Float64())), // a second to an hour
	}
}

// manyKinds adds GPUs and disk: one of eight jobs needs GPUs, and every second job specifies how much disk it needs.
func manyKinds(r *rand.Rand) matching.Resources {
	needs := manyShapes(r)
	if r.IntN(8) == 0 {
		needs.GPUs = 1 + r.IntN(4)
	}
	if r.IntN(2) == 0 {
		needs.DiskMiB = 100 << r.IntN(10)
	}
	return needs
}

// BenchmarkMatching measures the cost of a job's end: the job is released, its slot is matched, and another job is
// pushed, with the given number of queued jobs and 100 slots of 8 cpus. An event is one of these three steps.
func BenchmarkMatching(b *testing.B) {
	for _, queued := range []int{1e3, 1e4, 1e5, 1e6} {
		b.Run(fmt.Sprint("one-shape/", queued), func(b *testing.B) { benchmark(b, queued, oneShape) })
		b.Run(fmt.Sprint("many-shapes/", queued), func(b *testing.B) { benchmark(b, queued, manyShapes) })
		b.Run(fmt.Sprint("many-kinds/", queued), func(b *testing.B) { benchmark(b, queued, manyKinds) })
	}
}

func benchmark(b *testing.B, queued int, needs func(*rand.Rand) matching.Resources) {
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Unix(1e9, 0)
	var m matching.Matcher[*job]
	var run matching.Run[*job]
	slots := make([]*matching.Slot[*job], 100)
	for i := range slots {
		slots[i] = &matching.Slot[*job]{
			ID: fmt.Sprint(i), Host: corral.Resources{CPUs: 8, MemoryMiB: 16000, GPUs: 4, DiskMiB: 1 << 20},
			EndsAt: now.Add(1000 * time.Hour),
		}
		m.Open(slots[i])
	}
	fill := func() {
		for m.Queued() < queued {
			j := &job{}
			j.Job = matching.Job[*job]{Value: j, Run: &run, Needs: needs(random), Priority: float64(random.IntN(1000))}
			m.Push(&j.Job)
		}
	}
	fill()
	for range m.Match(now) {
	}
	fill()
	events := 0
	for i := 0; b.Loop(); i++ {
		s := slots[i%len(slots)]
		now = now.Add(time.Millisecond)
		if running := s.Running(); len(running) > 0 {
			s.Release(&running[0].Job, now)
			events++
		}
		for range m.Match(now, s) {
		}
		events++
		before := m.Queued()
		fill()
		events += m.Queued() - before
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkMatchingAll measures the cost of a job's end and of another job's arrival, after which all slots are matched,
// with the given number of slots of 8 cpus, all of which are busy.
func BenchmarkMatchingAll(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint("slots/", n), func(b *testing.B) {
			now := time.Unix(1e9, 0)
			var m matching.Matcher[*job]
			var run matching.Run[*job]
			var slots []*matching.Slot[*job]
			for i := range n {
				s := &matching.Slot[*job]{ID: fmt.Sprint(i), Host: corral.Resources{CPUs: 8, MemoryMiB: 8000},
					EndsAt: now.Add(1000 * time.Hour)}
				slots = append(slots, s)
				m.Open(s)
			}
			push := func() {
				j := &job{}
				j.Job = matching.Job[*job]{Value: j, Run: &run, Needs: oneShape(nil)}
				m.Push(&j.Job)
				for range m.Match(now) {
				}
			}
			for range 8*n + 10 {
				push()
			}
			for i := 0; b.Loop(); i++ {
				s := slots[i%n]
				now = now.Add(time.Millisecond)
				s.Release(&s.Running()[0].Job, now)
				for range m.Match(now, s) {
				}
				push()
			}
		})
	}
}
