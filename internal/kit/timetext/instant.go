package timetext

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Instants names the accepted forms of instants, for messages and help texts.
const Instants = "17:00, tomorrow 09:00, Friday 17:00, 2026-12-04T17:00 or 2026-12-04T17:00:00Z"

var (
	clockAlone = regexp.MustCompile(`^[0-2][0-9]:[0-9]{2}$`)
	date       = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}`)
	letters    = regexp.MustCompile(`^[A-Za-z]{2}`)
)

// Instant reports whether a text is to be read as an instant, where a duration is accepted, too: it is a time of day
// with two digits for the hour, or begins with a date or a word.
func Instant(text string) bool {
	return clockAlone.MatchString(text) || date.MatchString(text) || letters.MatchString(text)
}

// Moment reads an instant, which is not in the past, or a duration by read, which is Duration or Seconds. It returns
// the duration from now in both cases, and the instant as at, which is zero if the text is a duration.
func Moment(text string, now time.Time, read func(string) (time.Duration, error)) (d time.Duration, at time.Time,
	err error) {
	if Instant(text) {
		at, err = Ahead(text, now)
		d = at.Sub(now)
	} else {
		d, err = read(text)
	}
	switch {
	case err == nil:
		return d, at, nil
	case !strings.ContainsAny(text, "0123456789"):
		err = fmt.Errorf("%.40q is neither a duration such as 6h nor a time such as %s", text, Instants)
	}
	return 0, time.Time{}, err
}

// Ahead reads an instant that is not before now, in the zone of now unless the text has a zone: RFC 3339, a time of day
// alone (today), or after a date, today, tomorrow or the name of a weekday, which means the first such day on which the
// time is still to come. A time that the clock of the zone skips is refused, and one that it shows twice is the first.
func Ahead(text string, now time.Time) (time.Time, error) {
	t, err := read(text, now, 1)
	if err == nil && t.Before(now) {
		remedy := ""
		if clockAlone.MatchString(text) {
			remedy = ": write tomorrow " + text
		}
		return time.Time{}, fmt.Errorf("%q has passed%s", short(text), remedy)
	}
	return t, err
}

// Back reads an instant like Ahead, but one that may be in the past: a weekday is the last one on which the time has
// passed, and the word yesterday is accepted.
func Back(text string, now time.Time) (time.Time, error) { return read(text, now, -1) }

// read reads an instant; direction is 1 if weekdays are in the future, and -1 if they are in the past.
func read(text string, now time.Time, direction int) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	fields := strings.Fields(text)
	if len(fields) == 1 && date.MatchString(text) {
		fields = strings.SplitN(text, "T", 2)
	}
	if len(fields) == 1 {
		fields = append([]string{"today"}, fields...)
	}
	if len(fields) != 2 {
		return time.Time{}, notInstant(text)
	}
	clock, ok := timeOfDay(fields[1])
	if !ok {
		return time.Time{}, notInstant(text)
	}
	if day, err := time.Parse(time.DateOnly, fields[0]); err == nil {
		return local(text, day, clock, now.Location())
	}
	return onNamed(text, strings.ToLower(fields[0]), clock, now, direction)
}

func notInstant(text string) error {
	return fmt.Errorf("%q is not a time such as %s", short(text), Instants)
}

// timeOfDay reads HH:MM or HH:MM:SS and returns the time since midnight on a day without a change of clocks.
func timeOfDay(text string) (time.Duration, bool) {
	for _, layout := range []string{"15:04", time.TimeOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute +
				time.Duration(t.Second())*time.Second, true
		}
	}
	return 0, false
}

// onNamed returns the instant at which clocks show a time on a day that a word names.
func onNamed(text, day string, clock time.Duration, now time.Time, direction int) (time.Time, error) {
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	named := map[string]int{"today": 0, "tomorrow": 1}
	if direction < 0 {
		named["yesterday"] = -1
	}
	if offset, ok := named[day]; ok {
		return local(text, today.AddDate(0, 0, offset), clock, now.Location())
	}
	for i := range 8 {
		at := today.AddDate(0, 0, i*direction)
		if name := strings.ToLower(at.Weekday().String()); day != name && day != name[:3] {
			continue
		}
		t, err := local(text, at, clock, now.Location())
		if err != nil || t.Compare(now) != -direction { // else the time of today is on the wrong side of now
			return t, err
		}
	}
	return time.Time{}, notInstant(text)
}

// local returns the first instant at which the clocks of a zone show a time on a day. day is the midnight of that date
// in UTC. If the clocks skip the time, the error quotes text.
func local(text string, day time.Time, clock time.Duration, zone *time.Location) (time.Time, error) {
	shown := day.Add(clock)
	var found []time.Time
	for _, near := range []time.Duration{-24 * time.Hour, 24 * time.Hour} { // on either side of a change of clocks
		_, offset := shown.Add(near).In(zone).Zone()
		t := shown.Add(-time.Duration(offset) * time.Second).In(zone)
		if t.Format(time.DateTime) == shown.Format(time.DateTime) {
			found = append(found, t)
		}
	}
	if len(found) == 0 {
		return time.Time{}, fmt.Errorf("%q is skipped when the clocks change on %s", short(text),
			day.Format(time.DateOnly))
	}
	return slices.MinFunc(found, time.Time.Compare), nil
}
