package matching

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"pgregory.net/rapid"
)

func TestRoom(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	needs := func(cpus, memory int, estimate time.Duration) Resources {
		return Resources{corral.Resources{CPUs: cpus, MemoryMiB: memory}, estimate}
	}
	gpu, disk := needs(1, 1, 0), needs(1, 1, 0)
	gpu.GPUs, disk.DiskMiB = 1, 60
	for _, tt := range []struct {
		name  string
		speed corral.Speed
		runs  Resources
		first Resources
		want  Verdict
	}{
		{"nothing runs", 0, Resources{}, needs(2, 100, time.Minute), Start},
		{"there is room beside what runs", 0, needs(1, 50, 0), needs(1, 50, time.Minute), Start},
		{"cpus are short", 0, needs(2, 10, 0), needs(1, 10, time.Minute), Keep},
		{"memory is short", 0, needs(1, 90, 0), needs(1, 20, time.Minute), Keep},
		{"gpus are short", 0, gpu, gpu, Keep},
		{"disk is short", 0, disk, disk, Keep},
		{"there is room beside what needs something else", 0, gpu, disk, Start},
		{"larger than the machine, which is empty", 0, Resources{}, needs(3, 100, time.Minute), Start},
		{"time just suffices", 0, Resources{}, needs(1, 1, time.Hour), Start},
		{"time is short", 0, Resources{}, needs(1, 1, time.Hour+1), Return},
		{"time is short, and so is room", 0, needs(2, 1, 0), needs(1, 1, time.Hour+1), Keep},
		{"time just suffices at half the speed", 0.5, Resources{}, needs(1, 1, 30*time.Minute), Start},
		{"time is short at half the speed", 0.5, Resources{}, needs(1, 1, 30*time.Minute+time.Millisecond), Return},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Room{Host: corral.Resources{CPUs: 2, MemoryMiB: 100, GPUs: 1, DiskMiB: 100}, CutAt: now.Add(time.Hour),
				Speed: tt.speed}
			r.Take(tt.runs)
			if got := r.Judge(now, tt.first); got != tt.want {
				t.Errorf("Judge(%+v) beside %+v = %v, want %v", tt.first, tt.runs, got, tt.want)
			}
			if r.Free(tt.runs); !r.Empty() {
				t.Error("not empty when all is given back")
			}
		})
	}
}

// Before the instant that ChangesAt returns, time alone neither brings a job to a worker nor takes one back.
func TestTimeAloneChangesNothingBefore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1e9, 0)
		m, run := Matcher[int]{StartMargin: time.Second}, &Run[int]{}
		var slots []*Slot[int]
		for i := range rapid.IntRange(1, 3).Draw(t, "slots") {
			s := &Slot[int]{
				ID: string(rune('a' + i)), Host: corral.Resources{CPUs: rapid.IntRange(1, 4).Draw(t, "cpus"), MemoryMiB: 100},
				EndsAt: now.Add(time.Duration(rapid.IntRange(10, 200).Draw(t, "stays")) * time.Second),
				Speed:  rapid.SampledFrom([]corral.Speed{0, 0.5, 0.3}).Draw(t, "speed"),
			}
			slots = append(slots, s)
			m.Open(s)
		}
		held := map[int]*Slot[int]{}
		jobs := map[int]*Job[int]{}
		match := func(only ...*Slot[int]) {
			for s, taken := range m.Match(now, only...) {
				for _, j := range taken {
					held[j] = s
				}
			}
		}
		for i := range rapid.IntRange(1, 40).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 8000).Draw(t, "later")) * time.Millisecond)
			if rapid.Bool().Draw(t, "a job comes") || len(held) == 0 {
				jobs[i] = &Job[int]{Value: i, Run: run, Priority: float64(rapid.IntRange(0, 3).Draw(t, "priority")), Needs: Resources{
					corral.Resources{
						CPUs: rapid.IntRange(1, 4).Draw(t, "cpus"), MemoryMiB: rapid.IntRange(0, 100).Draw(t, "memory"),
					},
					time.Duration(rapid.SampledFrom([]int{10, 100, 1000, 20_000, 90_000}).Draw(t, "estimate")) * time.Millisecond,
				}}
				m.Push(jobs[i])
				match()
			} else {
				j := rapid.SampledFrom(slices.Sorted(maps.Keys(held))).Draw(t, "ends")
				s := held[j]
				delete(held, j)
				run.Observe(time.Duration(rapid.IntRange(1, 20_000).Draw(t, "took"))*time.Millisecond, jobs[j].Needs.Time, s.Speed)
				s.Release(jobs[j], now)
				match(s)
			}
			later := now.Add(time.Duration(rapid.IntRange(0, 300_000).Draw(t, "look after")) * time.Millisecond)
			if at, ok := m.ChangesAt(now); ok && !later.Before(at) {
				later = at.Add(-1)
			}
			if later.Before(now) {
				continue
			}
			for s, taken := range m.Match(later) {
				t.Fatalf("slot %s takes %v %s later", s.ID, taken, later.Sub(now))
			}
			for _, s := range slots {
				if back := s.Overdue(later); back != nil {
					t.Fatalf("slot %s gives %v back %s later", s.ID, back, later.Sub(now))
				}
			}
		}
	})
}

// A worker sends results at once when nothing waits or when there are many, and lets tasks run until two seconds before
// it leaves, or for nine tenths of a shorter time. Results for which other tasks wait are sent sooner.
func TestResults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		waiting, results int
		want             bool
	}{{0, 1, true}, {1, 1, false}, {9, 63, false}, {9, 64, true}, {0, 64, true}} {
		if got := SendNow(tt.waiting, tt.results); got != tt.want {
			t.Errorf("with %d jobs that wait, %d results are sent now: %t", tt.waiting, tt.results, got)
		}
	}
	for endsIn, want := range map[time.Duration]time.Duration{
		time.Minute: 58 * time.Second, 20 * time.Second: 18 * time.Second, 10 * time.Second: 9 * time.Second, 0: 0,
	} {
		if got := CutAfter(endsIn); got != want {
			t.Errorf("a worker that leaves in %s lets tasks run for %s, want %s", endsIn, got, want)
		}
	}
	if leaf, inner := ResultDelay(true), ResultDelay(false); inner <= 0 || leaf <= inner {
		t.Errorf("results of leaves wait for %s, others for %s", leaf, inner)
	}
}
