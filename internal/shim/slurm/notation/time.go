package notation

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrTime is Slurm's error for an invalid time.
var ErrTime = errors.New("invalid time specification")

// ParseLimit parses a time limit: MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS, DAYS-HOURS and so on, rounded up to
// minutes as in Slurm. The result is 0 if there is no limit ("UNLIMITED", "INFINITE", "-1", and 0).
func ParseLimit(text string) (time.Duration, error) {
	switch strings.ToUpper(text) {
	case "-1", "INFINITE", "UNLIMITED": // upper or lower case
		return 0, nil
	}
	days, rest, hasDays := strings.Cut(text, "-")
	if !hasDays {
		days, rest = "0", text
	}
	units := []int64{60, 1} // MINUTES[:SECONDS]
	fields := strings.Split(rest, ":")
	if hasDays || len(fields) == 3 {
		units = []int64{3600, 60, 1}
	}
	if hasDays && rest == "" { // "2-" is two days
		fields = nil
	}
	if len(fields) > len(units) {
		return 0, ErrTime
	}
	d, ok := number(days)
	seconds := d * 86400
	for i, field := range fields {
		n, valid := number(field)
		ok = ok && valid
		seconds += n * units[i]
	}
	if !ok || seconds > maxSeconds {
		return 0, ErrTime
	}
	return time.Duration((seconds+59)/60) * time.Minute, nil
}

// maxSeconds is the longest accepted time, more than a hundred years.
const maxSeconds = 1 << 32

// number parses at most eleven digits, so that the conversion of days to seconds does not overflow.
func number(text string) (int64, bool) {
	if text == "" || len(text) > 11 {
		return 0, false
	}
	n := int64(0)
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// Clock formats a duration like squeue: 0:05, 1:00:00, 2-03:00:00.
func Clock(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	days, hours, minutes, seconds := s/86400, s/3600%24, s/60%60, s%60
	switch {
	case days > 0:
		return fmt.Sprintf("%d-%02d:%02d:%02d", days, hours, minutes, seconds)
	case hours > 0:
		return fmt.Sprintf("%d:%02d:%02d", hours, minutes, seconds)
	}
	return fmt.Sprintf("%d:%02d", minutes, seconds)
}

// FullClock formats a duration like sacct and scontrol: 00:00:05, 2-03:00:00.
func FullClock(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	clock := fmt.Sprintf("%02d:%02d:%02d", s/3600%24, s/60%60, s%60)
	if days := s / 86400; days > 0 {
		return fmt.Sprintf("%d-%s", days, clock)
	}
	return clock
}

// Moment formats a time in its own zone: 2026-11-26T10:15:00.
func Moment(t time.Time) string { return t.Format("2006-01-02T15:04:05") }

// layouts are the layouts of ParseMoment; without a date, today is assumed, and without a year, the current year.
var layouts = []string{
	"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02", "01/02/06-15:04:05", "01/02/06-15:04", "01/02/06",
	"01/02-15:04:05", "01/02-15:04", "01/02", "01.02.06", "01.02", "010206", "0102",
	"15:04:05", "15:04", "3:04PM", "3:04 PM",
}

// daytimes maps the names of times of day to hours.
var daytimes = map[string]int{"midnight": 0, "noon": 12, "elevenses": 11, "fika": 15, "teatime": 16}

// ParseMoment parses a time like sacct's -S and -E: "now", "now-2days", "today", "2026-11-26T10:15", "11/26", "10:15".
// A time without a date refers to today, even if it has passed.
func ParseMoment(text string, now time.Time) (time.Time, error) {
	word := strings.ToLower(strings.TrimSpace(text))
	year, month, day := now.Date()
	midnight := time.Date(year, month, day, 0, 0, 0, 0, now.Location())
	if offset, ok := strings.CutPrefix(word, "now"); ok {
		d, err := parseOffset(strings.ReplaceAll(offset, " ", ""))
		return now.Add(d), err
	}
	switch word {
	case "today":
		return midnight, nil
	case "tomorrow":
		return midnight.AddDate(0, 0, 1), nil
	}
	if hour, ok := daytimes[word]; ok {
		return midnight.Add(time.Duration(hour) * time.Hour), nil
	}
	for _, layout := range layouts {
		t, err := time.ParseInLocation(layout, strings.ToUpper(word), now.Location())
		if err != nil {
			continue
		}
		switch {
		case t.Year() != 0: // it has a full date
			return t, nil
		case strings.HasPrefix(layout, "15") || strings.HasPrefix(layout, "3"):
			return midnight.Add(t.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, now.Location()))), nil
		}
		return t.AddDate(year, 0, 0), nil
	}
	return time.Time{}, fmt.Errorf("%w: %s", ErrTime, text)
}

// parseOffset parses the text after "now": +COUNT[UNIT] or -COUNT[UNIT], in seconds by default.
func parseOffset(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	digits := strings.TrimRight(text[1:], "abcdefghijklmnopqrstuvwxyz")
	n, ok := number(digits)
	unit, known := units[text[1+len(digits):]]
	if !ok || !known || text[0] != '+' && text[0] != '-' {
		return 0, fmt.Errorf("%w: now%s", ErrTime, text)
	}
	if text[0] == '-' {
		n = -n
	}
	if limit := maxSeconds * int64(time.Second) / int64(unit); n > limit || n < -limit {
		return 0, fmt.Errorf("%w: now%s", ErrTime, text)
	}
	return time.Duration(n) * unit, nil
}

var units = map[string]time.Duration{
	"": time.Second, "second": time.Second, "seconds": time.Second, "minute": time.Minute, "minutes": time.Minute,
	"hour": time.Hour, "hours": time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
	"week": 7 * 24 * time.Hour, "weeks": 7 * 24 * time.Hour,
}
