package wfformat

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// seconds is a duration that the format represents as a number of seconds. Unlike corral.Seconds it preserves
// nanoseconds (exactly, below 26 days), because writing and reading must not change a measured value. It refuses
// negative values, because it is read from users' files.
type seconds time.Duration

func (s seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', -1, 64), nil
}

// UnmarshalJSON parses a number of seconds, to the nanosecond; null counts as 0.
func (s *seconds) UnmarshalJSON(b []byte) error {
	v, err := number(b, math.MaxInt64/float64(time.Second)/2)
	*s = seconds(math.Round(v * float64(time.Second)))
	return err
}

// amount is a number of bytes. The format allows any number, so a fractional number is rounded up.
type amount int64

// UnmarshalJSON parses an integer exactly, because a float has too few digits for large files, and any other number as
// a float.
func (a *amount) UnmarshalJSON(b []byte) error {
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil && n >= 0 {
		*a = amount(n)
		return nil
	}
	v, err := number(b, 1<<62)
	*a = amount(math.Ceil(v))
	return err
}

// number parses a JSON number from 0 to most; null counts as 0.
func number(b []byte, most float64) (float64, error) {
	if string(b) == "null" {
		return 0, nil
	}
	v, err := strconv.ParseFloat(string(b), 64) // the decoder has checked that it is JSON
	if err != nil {
		return 0, fmt.Errorf("%.40s is not a number in range", b)
	}
	if v < 0 || v > most {
		return 0, fmt.Errorf("%.40s is negative or too large", b)
	}
	return v, nil
}

// timestampLayouts lists RFC 3339 and the other layouts found in published instances.
var timestampLayouts = []string{
	time.RFC3339,
	"2006-01-02T15:04:05",
	"20060102T150405-0700",
	"01-02-06T15:04:05Z",
}

// parseTime parses a timestamp; a timestamp without a zone is assumed to be in UTC. For an empty text it returns the
// zero time, and also for the Unix epoch, which Write writes if the format requires a time but none is known.
func parseTime(s string) (t time.Time, ok bool) {
	if s == "" {
		return time.Time{}, true
	}
	for _, layout := range timestampLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			if t.Equal(time.Unix(0, 0)) {
				return time.Time{}, true
			}
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// formatTime formats a timestamp; for the zero time it returns "".
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
