package queue_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/corral-pilot/corral/plan/sim/queue"
)

// anyJobs generates jobs for a machine. There are few distinct instants, so that many events coincide. Requested times
// are exact, up to four times too long, or too short.
func anyJobs(t *rapid.T, processors int, exact bool) []queue.Job {
	number := func(name string, from, to int) int { return rapid.IntRange(from, to).Draw(t, name) }
	jobs := make([]queue.Job, number("jobs", 0, 40))
	at := 0
	for i := range jobs {
		at += number("gap", 0, 3)
		j := queue.Job{ID: i, User: number("user", 0, 2), Submit: time.Duration(at), Processors: number("n", 1, processors)}
		j.Requested = time.Duration(number("requested", 1, 12))
		if j.Runtime = j.Requested; !exact {
			j.Runtime = time.Duration(number("runtime", 0, 13))
		}
		jobs[i] = j
	}
	return jobs
}

// checkHeld checks the properties of every machine: each job runs once, not before its submission, for its runtime or
// its requested time, and the limits of processors and of running jobs per user are respected.
func checkHeld(t *rapid.T, m queue.Machine, held []queue.Held) {
	type change struct {
		at         time.Duration
		user, n, d int
	}
	var changes []change
	for i, h := range held {
		if m.Refuses(h.Job) != "" {
			if h.Start >= 0 {
				t.Fatalf("job %d is refused, and started: %+v", i, h)
			}
			continue
		}
		if h.Start < h.Submit || h.End != h.Start+min(h.Runtime, h.Requested) || m.Interval > 0 && h.Start%m.Interval != 0 {
			t.Fatalf("job %d: %+v", i, h)
		}
		if h.End > h.Start {
			changes = append(changes, change{h.Start, h.User, h.Processors, 1}, change{h.End, h.User, -h.Processors, -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), a.d-b.d) })
	busy, running := 0, map[int]int{}
	for _, c := range changes {
		busy, running[c.user] = busy+c.n, running[c.user]+c.d
		if busy > m.Processors || m.MaxUserRun > 0 && running[c.user] > m.MaxUserRun {
			t.Fatalf("at %d %d of %d processors are held, %d jobs of user %d run", c.at, busy, m.Processors,
				running[c.user], c.user)
		}
	}
}

func TestEveryJobRunsWithinTheMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := queue.Machine{Processors: rapid.IntRange(1, 9).Draw(t, "processors"),
			Policy:     rapid.SampledFrom(queue.Policies).Draw(t, "policy"),
			MaxUserRun: rapid.IntRange(0, 3).Draw(t, "max user run"), Interval: time.Duration(rapid.IntRange(0, 4).Draw(t, "interval")),
			Walltime: time.Duration(rapid.SampledFrom([]int{0, 0, 8}).Draw(t, "walltime"))}
		checkHeld(t, m, queue.Replay(m, anyJobs(t, m.Processors+1, false)))
	})
}

// Without limits a job never starts later than a job that arrived after it.
func TestFCFSKeepsTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := queue.Machine{Processors: 6, Policy: queue.FCFS, Interval: time.Duration(rapid.IntRange(0, 3).Draw(t, "interval"))}
		held := queue.Replay(m, anyJobs(t, 6, false))
		for i := 1; i < len(held); i++ {
			if held[i].Start < held[i-1].Start {
				t.Fatalf("job %d starts at %d, the one before it at %d", i, held[i].Start, held[i-1].Start)
			}
		}
	})
}

func TestEASYIsAsItsAuthorsDescribeIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		processors := rapid.IntRange(1, 9).Draw(t, "processors")
		jobs := anyJobs(t, processors, rapid.Bool().Draw(t, "exact"))
		want := easyReference(processors, jobs)
		for i, h := range queue.Replay(queue.Machine{Processors: processors, Policy: queue.EASY}, jobs) {
			if h.Start != want[i] {
				t.Fatalf("job %d starts at %d, the reference's at %d", i, h.Start, want[i])
			}
		}
	})
}

// EASY never delays the first waiting job: its planned start only becomes earlier from pass to pass.
func TestEASYNeverDelaysTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := queue.New(queue.Machine{Processors: 6, Policy: queue.EASY}, anyJobs(t, 6, false))
		var head queue.Job
		promised := time.Duration(-1)
		for {
			at, ok := q.Next()
			if !ok {
				break
			}
			q.Advance(at, func(j queue.Job, at time.Duration) {
				if j == head && promised >= 0 && at > promised {
					t.Fatalf("%+v starts at %d, which was planned for %d", j, at, promised)
				}
			})
			planned := queue.Planned(q)
			if len(planned) == 0 {
				promised = -1
				continue
			}
			if p := planned[0]; p.Job == head && promised >= 0 && p.Start > promised {
				t.Fatalf("%+v was planned for %d, and is for %d", p.Job, promised, p.Start)
			}
			head, promised = planned[0].Job, planned[0].Start
		}
	})
}

// Conservative backfilling never delays a job beyond the start planned at its arrival, whatever jobs arrive later or
// end early; with exact requested times no job starts later than without the jobs that arrived after it.
func TestConservativeKeepsEveryReservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		exact := rapid.Bool().Draw(t, "exact")
		jobs := anyJobs(t, 6, exact)
		m := queue.Machine{Processors: 6, Policy: queue.Conservative, Interval: time.Duration(rapid.IntRange(0, 3).Draw(t, "interval"))}
		q := queue.New(m, jobs)
		promised := map[int]time.Duration{}
		for {
			at, ok := q.Next()
			if !ok {
				break
			}
			q.Advance(at, func(j queue.Job, at time.Duration) {
				if to, ok := promised[j.ID]; ok && at > to {
					t.Fatalf("job %d starts at %d, which was promised for %d", j.ID, at, to)
				}
			})
			if m.Interval > 0 && q.Now()%m.Interval > 0 {
				continue // there was no pass, and new jobs have no reservation
			}
			for _, p := range queue.Planned(q) {
				if to, ok := promised[p.ID]; ok && p.Start > to {
					t.Fatalf("job %d was promised %d, and gets %d", p.ID, to, p.Start)
				}
				promised[p.ID] = p.Start
			}
		}
		if n := rapid.IntRange(0, len(jobs)).Draw(t, "first"); exact {
			all, first := queue.Replay(m, jobs), queue.Replay(m, jobs[:n])
			for i := range first {
				if all[i].Start != first[i].Start {
					t.Fatalf("job %d starts at %d, without those after the first %d at %d", i, all[i].Start, n, first[i].Start)
				}
			}
		}
	})
}

// Backfilling conserves work: after each pass no waiting job could start without delaying the jobs to which the policy
// guarantees a start. For EASY this is only the first job, and no other job fits the free processors that remain.
func TestNobodyWaitsInVain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := queue.Machine{Processors: 6, Policy: rapid.SampledFrom(queue.Policies).Draw(t, "policy")}
		q := queue.New(m, anyJobs(t, 6, false))
		for {
			at, ok := q.Next()
			if !ok {
				break
			}
			q.Advance(at, nil)
			if at, ok := q.Next(); ok && at == q.Now() {
				continue // a job ends that has just begun
			}
			free := q.Free()
			for i, p := range queue.Planned(q) {
				own := m.Policy == queue.Conservative // the profile contains its own reservation
				if own {
					free.Give(p.Start, p.End, p.Processors)
				}
				first := i == 0 || m.Policy == queue.Conservative
				if at, ok := free.Fit(q.Now(), p.Requested, p.Processors); first && ok && at == q.Now() {
					t.Fatalf("%s: %+v fits now, and waits", m.Policy, p)
				}
				if own {
					free.Take(p.Start, p.End, p.Processors)
				}
			}
		}
		if q.Waiting() > 0 {
			t.Fatalf("%d jobs wait for nothing", q.Waiting())
		}
	})
}

// A clone continues in the same way as the original, and the two do not affect each other.
func TestClonesGoOnAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := queue.Machine{Processors: 5, Policy: rapid.SampledFrom(queue.Policies).Draw(t, "policy"),
			MaxUserRun: rapid.IntRange(0, 2).Draw(t, "max user run")}
		jobs := anyJobs(t, 5, false)
		q := queue.New(m, jobs)
		q.Advance(time.Duration(rapid.IntRange(0, 60).Draw(t, "until")), nil)
		play := func(q *queue.Queue) (all []queue.Held) {
			q.Advance(queue.Open, func(j queue.Job, at time.Duration) { all = append(all, queue.Held{Job: j, Start: at}) })
			return all
		}
		c := q.Clone()
		if a, b := play(c), play(q); !slices.Equal(a, b) {
			t.Fatalf("the copy: %+v\nthe original: %+v", a, b)
		}
	})
}
