package access

import (
	"fmt"
	"math"
	"time"

	"github.com/corral-pilot/corral"
)

// Limits bound the requests of all tokens of one owner together: an owner with forty tokens may use no more than an
// owner with one. A field that is 0 sets no limit.
type Limits struct {
	Rate     Rate
	Requests int   // maximum in progress at a time, including waits and events
	Bodies   int64 // maximum bytes of request bodies that corrald reads and holds at a time
	MaxBody  int64 // maximum bytes of one request, if its route accepts that many
}

// A Use records what one owner currently uses of the limits. It is a value: each method returns the updated use.
type Use struct {
	bucket   Bucket
	requests int
	bodies   int64 // bytes
}

// Enter admits a request with a body of the given number of bytes, or returns an error. A refused request uses nothing.
// A body that is the owner's only one is always admitted: MaxBody bounds it.
func (u Use) Enter(now time.Time, owner string, body int64, l Limits) (Use, error) {
	if l.Requests > 0 && u.requests >= l.Requests {
		return u, tooMany(time.Second, "%s has reached the maximum of %d requests in progress (--max-requests)",
			owner, l.Requests)
	}
	after, err := u.Hold(owner, 0, body, l)
	if err != nil {
		return u, err
	}
	bucket, wait := u.bucket.Take(now, l.Rate)
	if wait > 0 {
		return u, tooMany(wait, "%s's tokens together make more than %g requests a second (--rate)",
			owner, l.Rate.PerSecond)
	}
	after.bucket = bucket
	after.requests++
	return after, nil
}

// Hold adds bytes to those held for one request of the owner, of which own are held already, or returns an error if
// they must not be read.
func (u Use) Hold(owner string, own, more int64, l Limits) (Use, error) {
	others := u.bodies - own
	if l.Bodies > 0 && more > 0 && others > 0 && u.bodies+more > l.Bodies {
		return u, tooMany(time.Second, "other requests of %s with %d MiB are being read, and with this "+
			"one they would exceed the %d MiB of an owner (--max-bodies)",
			owner, mebibytes(others), mebibytes(l.Bodies))
	}
	u.bodies += more
	return u, nil
}

// Leave must be called at the end of an admitted request, with the number of bytes held for it.
func (u Use) Leave(body int64) Use {
	u.requests--
	u.bodies -= body
	return u
}

// Idle reports whether the use can be discarded.
func (u Use) Idle(now time.Time, l Limits) bool {
	return u.requests == 0 && u.bodies == 0 && u.bucket.Full(now, l.Rate)
}

func mebibytes(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

// TooMany is the error for a request that came too early. Nothing was done; the same request is admitted after Wait,
// unless other requests of the same owner come first. The HTTP status is 429.
type TooMany struct {
	Wait time.Duration
	err  error // of kind Unavailable
}

func tooMany(wait time.Duration, format string, args ...any) error {
	e := &TooMany{Wait: wait}
	e.err = corral.Errorf(corral.Unavailable, "%s: nothing was done; try again in %d s",
		fmt.Sprintf(format, args...), e.Seconds())
	return e
}

func (e *TooMany) Error() string { return e.err.Error() }
func (e *TooMany) Unwrap() error { return e.err }

// TooOften returns the error for an action performed more often than a rate allows; per is the rate in words.
func TooOften(wait time.Duration, owner, what, per string) error {
	return tooMany(wait, "%s %s more often than %s", owner, what, per)
}

// Seconds returns the wait as the value of Retry-After.
func (e *TooMany) Seconds() int { return int(math.Ceil(e.Wait.Seconds())) }
