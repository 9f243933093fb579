package access

import (
	"math"
	"time"
)

// A Rate limits how often something may be done: a sustained rate per second and a burst size.
type Rate struct {
	PerSecond float64 // 0: without limit
	Burst     int     // at least 1
}

// A Bucket remembers how much of its Rate somebody has used. The zero value is full. It is a value: Take returns the
// bucket as it is afterwards, and whoever keeps it keeps it under a lock.
type Bucket struct {
	spent float64   // requests, as of at
	at    time.Time // of the last request that was let in
}

// Take lets a request in at now, or says how long to wait until one would be. What was spent flows back with time, so a
// refused request costs nothing.
func (b Bucket) Take(now time.Time, rate Rate) (after Bucket, wait time.Duration) {
	if rate.PerSecond <= 0 {
		return b, 0
	}
	spent := b.left(now, rate)
	const rounding = 1e-6 // of a request: whoever waited as long as was said is let in
	if over := spent + 1 - float64(rate.Burst); over > rounding {
		return b, time.Duration(math.Ceil(over / rate.PerSecond * float64(time.Second)))
	}
	at := now
	if b.at.After(now) { // the clock was set back: what has flowed back does not flow twice
		at = b.at
	}
	return Bucket{spent + 1, at}, 0
}

// Full reports whether the bucket is as if it had never been used: then it need not be kept.
func (b Bucket) Full(now time.Time, rate Rate) bool { return b.left(now, rate) == 0 }

// left is what is still spent of an earlier time.
func (b Bucket) left(now time.Time, rate Rate) float64 {
	return max(0, b.spent-max(0, now.Sub(b.at).Seconds())*rate.PerSecond)
}
