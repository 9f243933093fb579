package condorworker

import (
	"fmt"
	"strings"
	"time"

	"github.com/corral-pilot/corral/condor"
	"github.com/corral-pilot/corral/internal/decide/attempt"
	"github.com/corral-pilot/corral/internal/node/process"
)

const (
	startMost = 5 * time.Minute // for the daemons to contact the pool, on a slow machine
	joinTime  = time.Minute     // for the pool to accept a worker that asks; HTCondor itself would try forever
)

// An entry is a worker's progress on its way into the pool: its daemons start, contact the pool, and are accepted. Each
// step has a time limit, which is at most half of the worker's remaining time. An entry only makes decisions; it does
// not read a clock or end processes.
type entry struct {
	end    time.Time     // of the worker
	within time.Duration // time for the next step, which must be complete at by
	by     time.Time
	asked  bool      // the daemons have contacted the pool
	joined time.Time // for the first time; zero: not yet
	in     bool      // in the pool, according to the log
}

func newEntry(now, end time.Time) entry {
	e := entry{end: end}
	e.expect(startMost, now)
	return e
}

func (e *entry) expect(most time.Duration, now time.Time) {
	e.within = min(most, e.end.Sub(now)/2)
	e.by = now.Add(e.within)
}

// note evaluates the daemons' log, and reports whether the pool has just accepted the worker, for the first time or
// again.
func (e *entry) note(log *condor.GlideinLog, now time.Time) (registered bool) {
	if log.Asked && !e.asked {
		e.asked = true
		e.expect(joinTime, now)
	}
	registered = log.Joined && !e.in
	if e.in = log.Joined; registered && e.joined.IsZero() {
		e.joined = now
	}
	return registered
}

// fault returns the reason why a worker of the pool at collector should leave, or nil if it should stay. A single
// refusal of a worker that has been in the pool may come from a pool that is restarting, so two are required.
func (e *entry) fault(log *condor.GlideinLog, collector string, now time.Time) *process.Word {
	within := e.within.Round(time.Second)
	switch {
	case log.Ended != "" && !strings.HasSuffix(log.Ended, "exited with status 0"): // status 0: its end or a drain
		return &process.Word{Error: "its condor_startd " + log.Ended}
	case log.Refused != "" && (e.joined.IsZero() || log.Refusals > 1):
		return &process.Word{Left: attempt.LeftRefused, Error: "the pool refused the token: " + log.Refused}
	case !e.joined.IsZero() || !now.After(e.by):
		return nil
	case !e.asked:
		return &process.Word{Left: attempt.LeftUnable,
			Error: fmt.Sprintf("HTCondor's daemons did not ask the pool at %s within %s", collector, within)}
	}
	return &process.Word{Left: attempt.LeftUnable,
		Error: fmt.Sprintf("the pool at %s did not take it in within %s", collector, within)}
}
