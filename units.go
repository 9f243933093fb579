package corral

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// latest returns the latest of several times. Rules use it for the time of a change, so that an object's times stay in
// order even if the clock was set back.
func latest(times ...time.Time) time.Time {
	return slices.MaxFunc(times, time.Time.Compare)
}

// Seconds is a duration written in JSON as a number of seconds. The names of such fields end in _s.
type Seconds time.Duration

// MarshalJSON writes d as decimal seconds, rounded to the millisecond.
func (d Seconds) MarshalJSON() ([]byte, error) {
	s := time.Duration(d).Round(time.Millisecond).Seconds()
	return strconv.AppendFloat(nil, s, 'f', -1, 64), nil
}

// UnmarshalJSON reads a finite number of seconds that fits a time.Duration, rounded to the microsecond. It restores
// exactly the value that MarshalJSON wrote, despite the rounding of binary fractions.
func (d *Seconds) UnmarshalJSON(b []byte) error {
	var s float64
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("%s is not a number of seconds", b)
	}
	if math.Abs(s) > math.MaxInt64/float64(time.Second)/2 {
		return fmt.Errorf("%s seconds is out of range", b)
	}
	*d = Seconds(time.Duration(math.Round(s*1e6)) * time.Microsecond)
	return nil
}

// String formats d like a time.Duration, for people.
func (d Seconds) String() string { return time.Duration(d).String() }
