package access

import (
	"math"
	"time"
)

// A Rate limits the frequency of an action: a sustained rate per second and a burst size.
type Rate struct {
	PerSecond float64 // 0: unlimited
	Burst     int     // at least 1
}

// A Bucket records how much of a Rate has been used. The zero value is full. It is a value: Take returns the updated
// bucket, and callers that share a bucket must protect it with a lock.
type Bucket struct {
	spent float64   // requests, as of at
	at    time.Time // time of the last request that was admitted
}

// Take admits a request at now, or returns how long to wait until one would be admitted. The bucket refills with time;
// a refused request uses nothing.
func (b Bucket) Take(now time.Time, rate Rate) (after Bucket, wait time.Duration) {
	if rate.PerSecond <= 0 {
		return b, 0
	}
	spent := b.left(now, rate)
	const rounding = 1e-6 // of a request: a client that waited as long as requested must be admitted
	if over := spent + 1 - float64(rate.Burst); over > rounding {
		return b, time.Duration(math.Ceil(over / rate.PerSecond * float64(time.Second)))
	}
	at := now
	if b.at.After(now) { // the clock was set back: do not refill for the same time twice
		at = b.at
	}
	return Bucket{spent + 1, at}, 0
}

// Full reports whether the bucket is full again, as if it had never been used. A full bucket need not be kept.
func (b Bucket) Full(now time.Time, rate Rate) bool { return b.left(now, rate) == 0 }

// left returns the earlier requests that still count at now.
func (b Bucket) left(now time.Time, rate Rate) float64 {
	return max(0, b.spent-max(0, now.Sub(b.at).Seconds())*rate.PerSecond)
}
