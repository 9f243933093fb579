package api

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/timetext"
)

// ReadDeadline reads a deadline as corral --deadline does: a positive duration, such as 6h, 02:30:00 or a number of
// seconds, or an instant after now, such as Friday 17:00. One of the results is zero. They are the values of
// plan.Goal's Deadline and DeadlineAt: an instant is sent to corrald as one, so that a request repeated with its key
// remains the same.
func ReadDeadline(text string, now time.Time) (within corral.Seconds, at time.Time, err error) {
	d, at, err := timetext.Moment(text, now, timetext.Seconds)
	switch {
	case err != nil:
		return 0, at, err
	case !at.IsZero():
		return 0, at.UTC(), nil
	case d <= 0:
		return 0, at, fmt.Errorf("%s is not a positive duration", d)
	case d < time.Millisecond:
		return 0, at, fmt.Errorf("%s is shorter than a millisecond", d)
	}
	return corral.Seconds(d.Round(time.Millisecond)), at, nil
}
