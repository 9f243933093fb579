package worker

import (
	"time"

	"github.com/corral-pilot/corral/embedded/wire"
)

// A lease is the time for which the dispatcher counts on this worker. It lasts from when a heartbeat was sent that was
// answered; what the dispatcher counts from is when that arrived, which is later.
type lease struct {
	began  time.Time  // heartbeats are numbered by the time since
	terms  wire.Terms // zero before the first welcome
	from   time.Time  // likewise
	beatAt time.Time
}

// grant starts a lease for a hello that was sent at sentAt and was answered with a welcome.
func (l *lease) grant(w *wire.Welcome, sentAt time.Time) {
	l.terms.Lease = time.Duration(w.LeaseMS) * time.Millisecond
	l.terms.Heartbeat = time.Duration(w.HeartbeatMS) * time.Millisecond
	l.from = sentAt
}

// beat returns a heartbeat to be sent at now. Its number says when that was.
func (l *lease) beat(now time.Time) *wire.Message {
	l.beatAt = now
	return &wire.Message{Type: wire.TypeHeartbeat, N: int64(now.Sub(l.began))}
}

// beatDue reports whether it is time for a heartbeat.
func (l *lease) beatDue(now time.Time) bool { return now.Sub(l.beatAt) >= l.terms.Heartbeat }

// extend makes the lease last from the heartbeat with number n, which was answered. An answer to an older heartbeat,
// which was long on its way, changes nothing.
func (l *lease) extend(n int64) {
	if from := l.began.Add(time.Duration(n)); from.After(l.from) {
		l.from = from
	}
}

// lasts reports whether the worker may still publish: the dispatcher has not given its jobs back yet.
func (l *lease) lasts(now time.Time) bool { return now.Sub(l.from) < l.terms.Lease }

// over reports whether there was a lease, and it has ended.
func (l *lease) over(now time.Time) bool { return !l.from.IsZero() && now.Sub(l.from) > l.terms.Lease }

// silent is how long no dispatcher has answered.
func (l *lease) silent(now time.Time) time.Duration {
	if l.from.IsZero() {
		return now.Sub(l.began)
	}
	return now.Sub(l.from)
}

// tick is how long the main loop may wait between two looks at the lease.
func (l *lease) tick() time.Duration {
	if l.terms.Heartbeat <= 0 {
		return workerTick
	}
	return min(workerTick, l.terms.Heartbeat/2)
}
