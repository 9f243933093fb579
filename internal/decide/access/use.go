package access

import (
	"fmt"
	"math"
	"time"

	"github.com/corral-pilot/corral"
)

// Limits bound what all tokens of one owner may ask together: an owner with forty tokens has no more than one with a
// single token. A field that is 0 sets no bound.
type Limits struct {
	Rate     Rate
	Requests int   // that may be under way at once, waits and events among them
	Bodies   int64 // bytes of request bodies that corrald may read and hold at once
	MaxBody  int64 // bytes of one request, where its route takes as many
}

// A Use is what one owner uses of the limits now. It is a value: each method returns the use afterwards.
type Use struct {
	bucket   Bucket
	requests int
	bodies   int64 // bytes
}

// Enter lets in a request with a body of so many bytes, or returns why not. A refused request uses nothing. A body that
// is the only one is always let in: MaxBody bounds it.
func (u Use) Enter(now time.Time, owner string, body int64, l Limits) (Use, error) {
	if l.Requests > 0 && u.requests >= l.Requests {
		return u, tooMany(time.Second, "%s has %d requests under way, the most of an owner (--max-requests)",
			owner, u.requests)
	}
	after, err := u.Hold(owner, 0, body, l)
	if err != nil {
		return u, err
	}
	bucket, wait := u.bucket.Take(now, l.Rate)
	if wait > 0 {
		return u, tooMany(wait, "%s's tokens together ask more often than %g times a second (--rate)",
			owner, l.Rate.PerSecond)
	}
	after.bucket = bucket
	after.requests++
	return after, nil
}

// Hold adds bytes to those that are held for one request of the owner, own so far, or returns why they are not read.
func (u Use) Hold(owner string, own, more int64, l Limits) (Use, error) {
	others := u.bodies - own
	if l.Bodies > 0 && more > 0 && others > 0 && u.bodies+more > l.Bodies {
		return u, tooMany(time.Second, "other requests of %s with %d MiB are being read, and with this "+
			"one it would be more than the %d MiB of an owner (--max-bodies)",
			owner, mebibytes(others), mebibytes(l.Bodies))
	}
	u.bodies += more
	return u, nil
}

// Leave is called at the end of a request that was let in, with the bytes that are held for it.
func (u Use) Leave(body int64) Use {
	u.requests--
	u.bodies -= body
	return u
}

// Idle reports whether the use need not be kept.
func (u Use) Idle(now time.Time, l Limits) bool {
	return u.requests == 0 && u.bodies == 0 && u.bucket.Full(now, l.Rate)
}

func mebibytes(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

// A TooMany is the error of a request that came too early: nothing was done, and the same request is let in after Wait,
// unless other requests of the same owner come first. It is answered with 429.
type TooMany struct {
	Wait time.Duration
	err  error // of kind Unavailable
}

func tooMany(wait time.Duration, format string, args ...any) error {
	e := &TooMany{Wait: wait}
	e.err = corral.Errorf(corral.Unavailable, "%s: nothing was done; ask again in %d s",
		fmt.Sprintf(format, args...), e.Seconds())
	return e
}

func (e *TooMany) Error() string { return e.err.Error() }
func (e *TooMany) Unwrap() error { return e.err }

// TooOften is the error of what is done more often than a rate; per is the rate in words.
func TooOften(wait time.Duration, owner, what, per string) error {
	return tooMany(wait, "%s %s more often than %s", owner, what, per)
}

// Seconds is the wait as Retry-After has it.
func (e *TooMany) Seconds() int { return int(math.Ceil(e.Wait.Seconds())) }
