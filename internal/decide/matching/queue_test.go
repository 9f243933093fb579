package matching

import (
	"slices"
	"testing"
	"time"

	"github.com/corral-pilot/corral"
	"pgregory.net/rapid"
)

// anyResources returns resources, many of which differ by less than a step of the ladder.
func anyResources(t *rapid.T) Resources {
	ms := rapid.SampledFrom([]int{1, 1000, 1010, 1020, 60000}).Draw(t, "ms")
	return Resources{
		Resources: corral.Resources{
			CPUs:      rapid.IntRange(1, 2).Draw(t, "cpus"),
			MemoryMiB: rapid.SampledFrom([]int{0, 1, 1000, 1001, 1005, 1010, 1015, 3000}).Draw(t, "memory"),
			GPUs:      rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "gpus"),
			DiskMiB:   rapid.SampledFrom([]int{0, 0, 0, 1000, 1005, 1010}).Draw(t, "disk"),
		},
		Time: time.Duration(ms) * time.Millisecond,
	}
}

// The best job and the overtaken job are found regardless of the buckets and of earlier searches and removals: the
// result is the same as when every job is examined.
func TestQueueFindsTheBest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var (
			q   queue[int]
			run Run[int]
			all []*Job[int]
		)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for _, arrived := range rapid.SliceOfN(rapid.Int64Range(0, 1000), 0, 10).Draw(t, "arrived") {
					if slices.ContainsFunc(all, func(j *Job[int]) bool { return j.arrived == arrived }) {
						continue
					}
					j := &Job[int]{Run: &run, Needs: anyResources(t), arrived: arrived}
					j.Priority = float64(rapid.IntRange(0, 1).Draw(t, "priority"))
					q.add(j)
					all = append(all, j)
				}
			},
			"remove": func(t *rapid.T) {
				if len(all) > 0 {
					i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
					q.remove(all[i])
					all = slices.Delete(all, i, i+1)
				}
			},
			"": func(t *rapid.T) {
				whole := anyResources(t)
				free := whole
				free.CPUs = rapid.IntRange(0, whole.CPUs).Draw(t, "free cpus")
				free.MemoryMiB = rapid.IntRange(0, whole.MemoryMiB).Draw(t, "free memory")
				free.GPUs = rapid.IntRange(0, whole.GPUs).Draw(t, "free gpus")
				free.DiskMiB = rapid.IntRange(0, whole.DiskMiB).Draw(t, "free disk")
				best, passed := lookAtEvery(all, free, whole)
				if gotBest, gotPassed := q.best(free, whole); gotBest != best || gotPassed != passed {
					t.Fatalf("best() = %p, %p, want %p, %p", gotBest, gotPassed, best, passed)
				}
			},
		})
	})
}

func lookAtEvery(all []*Job[int], free, whole Resources) (best, passed *Job[int]) {
	for _, j := range all {
		if free.holds(&j.Needs) && (best == nil || j.before(best)) {
			best = j
		}
	}
	for _, j := range all {
		if best != nil && j.before(best) && whole.holds(&j.Needs) && (passed == nil || j.before(passed)) {
			passed = j
		}
	}
	return best, passed
}

// When the job with the smallest needs has left a bucket and the others fit no slot, the bucket is searched once, not
// at every event.
func TestLongBucketIsSearchedOnce(t *testing.T) {
	t.Parallel()
	var q queue[int]
	var run Run[int]
	var small *Job[int]
	for i := range 1000 {
		j := &Job[int]{Run: &run, Needs: Resources{corral.Resources{CPUs: 1, MemoryMiB: 1010}, time.Second}, arrived: int64(i)}
		if i == 500 {
			j.Needs.MemoryMiB = 1000
			small = j
		}
		q.add(j)
	}
	room := Resources{corral.Resources{CPUs: 1, MemoryMiB: 1005}, time.Minute}
	if found, _ := q.best(room, room); found != small {
		t.Fatalf("found %v, want the one that fits", found)
	}
	q.remove(small)
	if found, _ := q.best(room, room); found != nil {
		t.Fatalf("found %v, want none", found)
	}
	if least := q.sorted[0].least; room.holds(&least) {
		t.Errorf("the bucket is searched again: its least is %+v", least)
	}
}

// RemoveFunc removes exactly the selected jobs, whatever else is queued.
func TestRemoveFunc(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var m Matcher[int]
		var run, other Run[int]
		n := rapid.IntRange(0, 20).Draw(t, "jobs")
		remove := map[int]bool{}
		var want []int
		for i := range n {
			of := &run
			if rapid.Bool().Draw(t, "other") {
				of = &other
			}
			m.Push(&Job[int]{Value: i, Run: of, Needs: Resources{Resources: corral.Resources{CPUs: 1 + i%3}}})
			if remove[i] = rapid.Bool().Draw(t, "remove"); remove[i] && of == &run {
				want = append(want, i)
			}
		}
		got := m.RemoveFunc(&run, func(i int) bool { return remove[i] })
		slices.Sort(got)
		if !slices.Equal(got, want) || m.Queued() != n-len(want) {
			t.Fatalf("removed %v, want %v; %d of %d are left", got, want, m.Queued(), n)
		}
	})
}
