// Package timetext reads durations and instants in the forms in which people write them. It is the only parser of
// durations that users type: each form means the same at every flag. Duration and Seconds read durations, and Ahead and
// Back read instants, which Instant tells from durations where both are accepted.
//
// A text with two likely meanings is refused, with both of them in the message, because the cost of the wrong one is a
// pilot of an hour and a half in place of one of ninety seconds. Errors are sentences about the quoted text; the caller
// adds the name of the flag.
package timetext

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// Forms names the accepted forms of durations, for messages and help texts.
const Forms = "90s, 2h30m, 02:30:00 or 1-12:00 (days-hours)"

var (
	bare = regexp.MustCompile(`^[0-9]+(\.[0-9]*)?$|^\.[0-9]+$`)
	pair = regexp.MustCompile(`^([0-9]+):([0-9]{2})$`)
	// Days, hours, minutes and seconds; either the days or the seconds are present.
	days  = regexp.MustCompile(`^([0-9]+)-([0-9]{1,2})(?::([0-9]{2}))?(?::([0-9]{2}))?$`)
	hours = regexp.MustCompile(`^()([0-9]+):([0-9]{2}):([0-9]{2})$`)
)

// Duration reads a duration: a number with units as in time.ParseDuration, HH:MM:SS, or D-HH[:MM[:SS]]. A number
// without a unit, except 0, and two fields such as 1:30 are refused.
func Duration(text string) (time.Duration, error) {
	if bare.MatchString(text) && strings.Trim(text, "0.") != "" {
		return 0, fmt.Errorf("%q has no unit: write %ss or %sm", short(text), text, text)
	}
	return withUnit(text)
}

// Seconds reads a duration like Duration, except that a number without a unit counts seconds.
func Seconds(text string) (time.Duration, error) {
	if bare.MatchString(text) {
		text += "s"
	}
	return withUnit(text)
}

// A Value is the value of a command-line flag that accepts a duration. It implements flag.Getter.
type Value struct {
	time.Duration
	read func(string) (time.Duration, error)
}

// NewValue returns a flag's value with its default; read is Duration or Seconds.
func NewValue(value time.Duration, read func(string) (time.Duration, error)) *Value {
	return &Value{value, read}
}

// Set reads the value that a user has given.
func (v *Value) Set(text string) (err error) {
	v.Duration, err = v.read(text)
	return err
}

// Get returns the value as a time.Duration.
func (v *Value) Get() any { return v.Duration }

func withUnit(text string) (time.Duration, error) {
	if m := pair.FindStringSubmatch(text); m != nil {
		return 0, fmt.Errorf("%q has two meanings: write %s or %s", short(text), units(m[1], "h", m[2], "m"),
			units(m[1], "m", m[2], "s"))
	}
	for _, form := range []*regexp.Regexp{days, hours} {
		if m := form.FindStringSubmatch(text); m != nil {
			d, err := fields(m[1:])
			return d, wrap.Errorf(err, "%q is not a duration", short(text))
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as %s", short(text), Forms)
	}
	return d, nil
}

// fields returns the sum of days, hours, minutes and seconds, of which an empty one counts as 0.
func fields(of []string) (time.Duration, error) {
	var sum float64
	for i, unit := range []struct {
		name  string
		limit float64 // exclusive, unless the unit is the first one that is written
		size  time.Duration
	}{
		{"days", math.Inf(1), 24 * time.Hour}, {"hours", 24, time.Hour}, {"minutes", 60, time.Minute},
		{"seconds", 60, time.Second},
	} {
		n, _ := strconv.ParseFloat("0"+of[i], 64) // digits; too many of them are infinite
		if n >= unit.limit && (i == 0 || of[i-1] != "") {
			return 0, fmt.Errorf("its %s must be less than %.0f", unit.name, unit.limit)
		}
		sum += n * float64(unit.size)
	}
	if sum >= math.MaxInt64 {
		return 0, errors.New("it is longer than 292 years")
	}
	return time.Duration(sum), nil
}

// units writes two numbers with their units, without those that are 0.
func units(first, unit, second, smaller string) (text string) {
	for _, part := range [][2]string{{first, unit}, {second, smaller}} {
		if n := strings.TrimLeft(part[0], "0"); n != "" {
			text += short(n) + part[1]
		}
	}
	if text == "" {
		return "0" + unit
	}
	return text
}

// short limits a text that is quoted in a message.
func short(text string) string { return fmt.Sprintf("%.40s", text) }
