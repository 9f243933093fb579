package worker

import "time"

// An idleWatch decides when the pilot is told that the worker has nothing to do, or has something again.
type idleWatch struct {
	since time.Time // when the last job ended
	told  time.Time // when the pilot was last told for how long; zero while there are jobs
	busy  bool      // the pilot was told that there are jobs
}

// look says whether to tell the pilot now, and what: how long the worker has had nothing to do, 0 if it has jobs.
func (i *idleWatch) look(now time.Time, jobs int) (idle time.Duration, tell bool) {
	if jobs > 0 {
		tell = !i.busy
		i.busy, i.told = true, time.Time{}
		return 0, tell
	}
	if now.Sub(i.told) < idleTick {
		return 0, false
	}
	i.busy, i.told = false, now
	return max(now.Sub(i.since), time.Nanosecond), true
}
