package pool

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/execution"
)

// model is the matching as a pure structure: a queue, benches, and time that the test moves.
type model struct {
	q       queue
	benches []*bench
	now     time.Time
	all     []*entry
	pace    pace
}

func (m *model) expect(e *entry) time.Duration { return m.pace.expect(e.estimate) }

func (m *model) share() int {
	cpus := 0
	for _, b := range m.benches {
		cpus += b.cpus
	}
	return (m.q.size + cpus - 1) / max(1, cpus)
}

func job(seq int64, cpus, memory int, estimate time.Duration) execution.Job {
	return execution.Job{
		Run: corral.RunID(1 + seq%3), Seq: seq, CPUs: cpus, MemoryMiB: memory,
		Tasks: []execution.Task{{Index: 0, Estimate: estimate}},
	}
}

func (m *model) submit(t *rapid.T) {
	seq := int64(len(m.all))
	estimate := time.Duration(rapid.SampledFrom([]int64{1, 3, 40, 900, 1000, 1010, 60e3, 61e3, 500e3}).Draw(t, "ms")) * time.Millisecond
	j := job(seq, rapid.IntRange(1, 6).Draw(t, "cpus"), rapid.SampledFrom([]int{0, 1, 100, 1000, 1001, 1050, 3000}).Draw(t, "memory"), estimate)
	j.Priority = float64(rapid.IntRange(0, 4).Draw(t, "priority"))
	e := newEntry(j)
	m.all = append(m.all, e)
	m.q.push(e)
}

func (m *model) register(t *rapid.T) {
	m.benches = append(m.benches, &bench{
		cpus: rapid.IntRange(1, 5).Draw(t, "cpus"), memory: rapid.SampledFrom([]int{500, 1000, 1001, 4000}).Draw(t, "memory"),
		endsAt: m.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "left")) * time.Second),
	})
}

// fillAll matches all benches and checks what they were given.
func (m *model) fillAll(t *rapid.T) {
	for _, b := range m.benches {
		before := len(b.waiting)
		taken := b.fill(&m.q, m.now, m.share(), m.expect)
		for _, e := range taken {
			if e.estimate > b.endsAt.Sub(m.now) {
				t.Fatalf("a job of %v starts on a worker with %v left", e.estimate, b.endsAt.Sub(m.now))
			}
			if e.job.CPUs > b.cpus || e.job.MemoryMiB > b.memory {
				t.Fatalf("job %+v cannot run on bench %+v", e.job, b)
			}
			if slices.Contains(b.waiting, e) && m.expect(e) > prefetchWork*time.Duration(b.cpus) {
				t.Fatalf("a job that will take %v waits at a worker", m.expect(e))
			}
		}
		if len(b.waiting) > before && len(b.waiting) > prefetchMost*b.cpus {
			t.Fatalf("%d jobs wait at a worker of %d cpus", len(b.waiting), b.cpus)
		}
	}
}

// end releases one job of a bench, running or waiting.
func (m *model) end(t *rapid.T) {
	var busy []*bench
	for _, b := range m.benches {
		if len(b.running) > 0 {
			busy = append(busy, b)
		}
	}
	if len(busy) == 0 {
		return
	}
	b := rapid.SampledFrom(busy).Draw(t, "bench")
	e := rapid.SampledFrom(b.running).Draw(t, "job")
	m.pace.observe(time.Duration(rapid.IntRange(0, 2000).Draw(t, "took"))*time.Millisecond, e.estimate)
	b.release(e, m.now)
	if rapid.Bool().Draw(t, "again") {
		e.renew()
		m.q.restore(e)
	}
}

func (m *model) lose(t *rapid.T) {
	if len(m.benches) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.benches)-1).Draw(t, "bench")
	m.benches[i].clear()
	m.benches = slices.Delete(m.benches, i, i+1)
}

func (m *model) cancelRun(t *rapid.T) {
	run := corral.RunID(rapid.IntRange(1, 3).Draw(t, "run"))
	for _, e := range m.q.removeRun(run) {
		if e.job.Run != run {
			t.Fatalf("job of run %d was removed with run %d", e.job.Run, run)
		}
	}
	for _, b := range m.q.buckets {
		for _, e := range b.entries {
			if e.job.Run == run {
				t.Fatalf("a job of run %d is still queued", run)
			}
		}
	}
}

// check holds at all times.
func (m *model) check(t *rapid.T) {
	queued := 0
	for _, b := range m.q.buckets {
		queued += b.Len()
		for i, e := range b.entries {
			if e.index != i {
				t.Fatalf("entry at %d thinks that it is at %d", i, e.index)
			}
			if e.reserved != nil && e.reserved.keptFor != e {
				t.Fatalf("a job is promised a bench that does not know")
			}
		}
	}
	if queued != m.q.size {
		t.Fatalf("queue has size %d and %d entries", m.q.size, queued)
	}
	for _, b := range m.benches {
		cpus, memory := 0, 0
		for _, e := range b.running {
			cpus += e.job.CPUs
			memory += e.job.MemoryMiB
		}
		if cpus != b.usedCPUs || memory != b.usedMemory || cpus > b.cpus || memory > b.memory {
			t.Fatalf("bench of %d cpus, %d MiB runs jobs of %d, %d, booked as %d, %d",
				b.cpus, b.memory, cpus, memory, b.usedCPUs, b.usedMemory)
		}
		if b.keptFor != nil && b.keptFor.reserved != b {
			t.Fatalf("a bench is kept for a job that does not know")
		}
	}
}

// checkNoneIdle holds after all benches were filled: no job is queued that a bench could start, unless
// the bench has an order of its own to keep.
func (m *model) checkNoneIdle(t *rapid.T) {
	for _, b := range m.benches {
		if len(b.waiting) > 0 || b.keptFor != nil {
			continue
		}
		free := b.free(m.now)
		for _, bucket := range m.q.buckets {
			for _, e := range bucket.entries {
				if e.fits(free) {
					t.Fatalf("job %+v is queued while %+v is free", e.job, free)
				}
			}
		}
	}
}

func TestMatchingProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{now: time.Unix(1e9, 0)}
		t.Repeat(map[string]func(*rapid.T){
			"submit":   m.submit,
			"register": m.register,
			"end":      m.end,
			"lose":     m.lose,
			"cancel":   m.cancelRun,
			"pass": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 20000).Draw(t, "ms")) * time.Millisecond)
			},
			"fill": func(t *rapid.T) { m.fillAll(t); m.checkNoneIdle(t) },
			"":     m.check,
		})
	})
}

// The best job is found whatever the buckets are: as a look at every job finds it.
func TestQueueFindsTheBest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{now: time.Unix(1e9, 0)}
		for range rapid.IntRange(0, 40).Draw(t, "jobs") {
			m.submit(t)
		}
		whole := room{rapid.IntRange(1, 6).Draw(t, "cpus"), rapid.IntRange(0, 3500).Draw(t, "memory"), time.Duration(rapid.IntRange(0, 70000).Draw(t, "ms")) * time.Millisecond}
		free := room{rapid.IntRange(0, whole.cpus).Draw(t, "free cpus"), rapid.IntRange(0, whole.memory).Draw(t, "free memory"), whole.left}
		var best, passed *entry
		for _, e := range m.all {
			if e.fits(free) && (best == nil || e.before(best)) {
				best = e
			}
		}
		for _, e := range m.all {
			if best != nil && e.before(best) && e.fits(whole) && (passed == nil || e.before(passed)) {
				passed = e
			}
		}
		if gotBest, gotPassed := m.q.best(free, whole); gotBest != best || gotPassed != passed {
			t.Fatalf("best() = %p, %p, want %p, %p", gotBest, gotPassed, best, passed)
		}
	})
}

// A job of four cpus comes behind nothing, but small ones that fit keep all four from being free.
func TestOvertakenJobGetsAWorkerAtLast(t *testing.T) {
	t.Parallel()
	m := &model{now: time.Unix(1e9, 0)}
	b := &bench{cpus: 4, memory: 4000, endsAt: m.now.Add(time.Hour)}
	m.benches = []*bench{b}
	seq := int64(0)
	small := func() {
		seq++
		m.q.push(newEntry(job(seq, 1, 10, 3*time.Second)))
	}
	step := func() []*entry { return b.fill(&m.q, m.now, m.share(), m.expect) }
	for range 4 {
		small()
	}
	step()
	big := newEntry(job(1000, 4, 10, time.Second))
	big.job.Priority = 1
	m.q.push(big)
	for i := range 100 {
		small()
		m.now = m.now.Add(time.Second)
		if len(b.running) > 0 {
			b.release(b.running[0], m.now)
		}
		if slices.Contains(step(), big) {
			if waited := time.Duration(i+1) * time.Second; waited < overtakenLong {
				t.Errorf("the worker was emptied after %v; small jobs may overtake for %v", waited, overtakenLong)
			}
			return
		}
	}
	t.Error("the big job never started")
}

func TestJobThatFitsNoWorkerBlocksNone(t *testing.T) {
	t.Parallel()
	m := &model{now: time.Unix(1e9, 0)}
	b := &bench{cpus: 2, memory: 4000, endsAt: m.now.Add(time.Hour)}
	huge := newEntry(job(1, 64, 10, time.Second))
	huge.job.Priority = 9
	m.q.push(huge)
	for seq := range int64(50) {
		m.q.push(newEntry(job(2+seq, 2, 10, time.Second)))
	}
	for range 50 {
		m.now = m.now.Add(time.Second)
		taken := b.fill(&m.q, m.now, m.share(), m.expect)
		if len(taken) != 1 {
			t.Fatalf("taken %d jobs, want one", len(taken))
		}
		b.release(taken[0], m.now)
	}
}

func TestPrefetch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		cpus     int
		queued   int
		estimate time.Duration
		pace     pace
		share    int
		want     int // that wait
	}{
		{name: "short jobs wait up to the most", cpus: 1, queued: 500, estimate: time.Millisecond, share: 250, want: 64},
		{name: "for each cpu", cpus: 2, queued: 500, estimate: time.Millisecond, share: 250, want: 128},
		{name: "up to the work", cpus: 1, queued: 500, estimate: 50 * time.Millisecond, share: 250, want: 3},
		{name: "long jobs do not wait", cpus: 1, queued: 500, estimate: time.Second, share: 250, want: 0},
		{name: "measured short jobs do", cpus: 1, queued: 500, estimate: time.Minute, pace: pace{1e-3, 60}, share: 250, want: 64},
		{name: "measured long jobs do not", cpus: 1, queued: 500, estimate: time.Millisecond, pace: pace{60, 1e-3}, share: 250, want: 0},
		{name: "only a fair share", cpus: 1, queued: 10, estimate: time.Millisecond, share: 5, want: 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := &model{now: time.Unix(1e9, 0), pace: tt.pace}
			for seq := range tt.queued {
				m.q.push(newEntry(job(int64(seq), 1, 1, tt.estimate)))
			}
			b := &bench{cpus: tt.cpus, memory: 1000, endsAt: m.now.Add(time.Hour)}
			b.fill(&m.q, m.now, tt.share, m.expect)
			if len(b.running) != tt.cpus || len(b.waiting) != tt.want {
				t.Errorf("%d jobs run and %d wait, want %d and %d", len(b.running), len(b.waiting), tt.cpus, tt.want)
			}
		})
	}
}

// What is first in the queue and long must not be starved by what is short and can be prefetched.
func TestPrefetchDoesNotOvertake(t *testing.T) {
	t.Parallel()
	m := &model{now: time.Unix(1e9, 0)}
	b := &bench{cpus: 1, memory: 1000, endsAt: m.now.Add(time.Hour)}
	push := func(seq int64, priority float64, estimate time.Duration) *entry {
		e := newEntry(job(seq, 1, 1, estimate))
		e.job.Priority = priority
		m.q.push(e)
		return e
	}
	push(1, 0, time.Millisecond)
	b.fill(&m.q, m.now, 100, m.expect)
	first := push(2, 1, time.Minute)
	for seq := range int64(100) {
		push(3+seq, 0, time.Millisecond)
	}
	if taken := b.fill(&m.q, m.now, 100, m.expect); len(taken) != 0 {
		t.Errorf("%d short jobs wait at the worker before the long one", len(taken))
	}
	b.release(b.running[0], m.now)
	if taken := b.fill(&m.q, m.now, 100, m.expect); len(taken) == 0 || taken[0] != first {
		t.Errorf("the long job did not start first")
	}
}

// BenchmarkQueued measures what a queued job costs, without what its task points to.
func BenchmarkQueued(b *testing.B) {
	for _, n := range []int{100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				var q queue
				for seq := range n {
					q.push(newEntry(job(int64(seq), 1, 100, time.Second)))
				}
				now := time.Unix(1e9, 0)
				w := &bench{cpus: 1, memory: 1000, endsAt: now.Add(time.Hour)}
				for q.size > 0 {
					e := w.fill(&q, now, 1, func(e *entry) time.Duration { return e.estimate })[0]
					w.release(e, now)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/job")
		})
	}
}
