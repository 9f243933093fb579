package matching

import (
	"time"

	"github.com/corral-pilot/corral"
)

// A Room is a worker's own half of its Slot: what it has for the job that waits there first. The two follow the same
// rule, in the same order, and so agree without a message; they differ only while one is on its way. A worker knows
// what really runs, so it has the last word, also on whether the time that is left suffices.
type Room struct {
	Host  corral.Resources // all that there is for jobs
	CutAt time.Time        // when what runs is killed

	used corral.Resources // by what runs
}

// A Verdict is what becomes of the job that waits first at a worker.
type Verdict uint8

const (
	Keep   Verdict = iota // it waits on: there is no room yet
	Start                 // it starts now
	Return                // it goes back: it would be cut
)

// Judge says what becomes of the job that waits first. What is larger than the machine starts alone.
func (r *Room) Judge(now time.Time, needs Resources) Verdict {
	switch {
	case !r.Empty() && !r.used.Plus(needs.Resources).FitIn(r.Host):
		return Keep
	case r.Late(now, needs.Time):
		return Return
	}
	return Start
}

// Late reports whether what is estimated to take so long would be cut if it began now.
func (r *Room) Late(now time.Time, estimate time.Duration) bool { return r.CutAt.Sub(now) < estimate }

// Take books that a job runs, Free that it does no more.
func (r *Room) Take(needs Resources) { r.used = r.used.Plus(needs.Resources) }

// Free gives back what Take took.
func (r *Room) Free(needs Resources) { r.used = r.used.Minus(needs.Resources) }

// Empty reports whether nothing runs.
func (r *Room) Empty() bool { return r.used.CPUs == 0 }

const (
	killGrace    = 2 * time.Second // before a worker's end, at most a tenth of its time: tasks are killed
	resultsBatch = 64              // results that are worth a message, whatever else may come
	resultDelay  = 5 * time.Millisecond
	leafDelay    = 25 * time.Millisecond
)

// ResultDelay is how long a result waits at its worker for others, while there is more to run. That of a task that is
// done, and for which no other task waits, only makes room for more jobs: those that are prefetched bridge that.
func ResultDelay(leaf bool) time.Duration {
	if leaf {
		return leafDelay
	}
	return resultDelay
}

// CutAfter is how long a worker that has to leave in endsIn lets tasks run.
func CutAfter(endsIn time.Duration) time.Duration { return endsIn - min(killGrace, endsIn/10) }

// SendNow reports whether a worker sends its results at once; else they wait for others, at most ResultDelay. It must
// not wait when it has nothing more to start, because what it is given next depends on them. Thousands of tasks of a
// millisecond would otherwise cost a message each.
func SendNow(waiting, results int) bool { return waiting == 0 || results >= resultsBatch }
