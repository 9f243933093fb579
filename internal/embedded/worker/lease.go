package worker

import (
	"time"

	"github.com/corral-pilot/corral/internal/embedded/wire"
)

// A lease is the period in which the dispatcher relies on this worker. It starts when the worker sends a heartbeat that
// is later answered; the dispatcher counts from the arrival of the heartbeat, which is later.
type lease struct {
	began  time.Time  // heartbeats are numbered by the time since then
	terms  wire.Terms // zero before the first welcome
	from   time.Time  // start of the lease; zero before the first welcome
	beatAt time.Time
}

// grant starts a lease for a hello that was sent at sentAt and answered with a welcome.
func (l *lease) grant(w *wire.Welcome, sentAt time.Time) {
	l.terms.Lease = time.Duration(w.LeaseMS) * time.Millisecond
	l.terms.Heartbeat = time.Duration(w.HeartbeatMS) * time.Millisecond
	l.from = sentAt
}

// beat returns a heartbeat to be sent at now. Its number encodes this time.
func (l *lease) beat(now time.Time) *wire.Message {
	l.beatAt = now
	return &wire.Message{Type: wire.TypeHeartbeat, N: int64(now.Sub(l.began))}
}

// beatDue reports whether it is time for a heartbeat.
func (l *lease) beatDue(now time.Time) bool { return now.Sub(l.beatAt) >= l.terms.Heartbeat }

// extend restarts the lease at the heartbeat with number n, which was answered. A delayed answer to an older heartbeat
// has no effect.
func (l *lease) extend(n int64) {
	if from := l.began.Add(time.Duration(n)); from.After(l.from) {
		l.from = from
	}
}

// lasts reports whether the worker may still publish: the dispatcher has not yet returned its jobs.
func (l *lease) lasts(now time.Time) bool { return now.Sub(l.from) < l.terms.Lease }

// over reports whether there was a lease that has ended.
func (l *lease) over(now time.Time) bool { return !l.from.IsZero() && now.Sub(l.from) > l.terms.Lease }

// silent returns the time since the start of the lease or, before the first welcome, since the start of the worker.
func (l *lease) silent(now time.Time) time.Duration {
	if l.from.IsZero() {
		return now.Sub(l.began)
	}
	return now.Sub(l.from)
}

// tick returns how long the main loop may wait between two checks of the lease.
func (l *lease) tick() time.Duration {
	if l.terms.Heartbeat <= 0 {
		return workerTick
	}
	return min(workerTick, l.terms.Heartbeat/2)
}
