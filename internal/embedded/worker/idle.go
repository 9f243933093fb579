package worker

import "time"

// An idleWatch decides when to notify the pilot that the worker has become idle or busy.
type idleWatch struct {
	since time.Time // when the last job ended
	told  time.Time // when the pilot was last notified that the worker is idle; zero while there are jobs
	busy  bool      // the pilot was notified that there are jobs
}

// look reports whether to notify the pilot now, and how long the worker has been idle, 0 if it has jobs.
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
