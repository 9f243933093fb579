package cli

// Durations and times on the command line, in the forms of package timetext. A time without a zone is one of the user's
// zone. corrald receives durations and RFC 3339.

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/timetext"
	"github.com/corral-pilot/corral/plan"
)

// durationFlag is a flag that accepts a duration, which needs a unit.
func durationFlag(name string, value time.Duration, usage string) cli.Flag {
	return &cli.GenericFlag{Name: name, Value: timetext.NewValue(value, timetext.Duration), Usage: usage}
}

// secondsFlag is a flag that accepts a duration, or a number of seconds.
func secondsFlag(name string, value time.Duration, usage string) cli.Flag {
	return &cli.GenericFlag{Name: name, Value: timetext.NewValue(value, timetext.Seconds), Usage: usage}
}

// deadlineFlag is a flag for the end of work; deadlineOf reads it. Its help is usage and the forms, followed by more.
func deadlineFlag(usage, more string) cli.Flag {
	return &cli.StringFlag{Name: "deadline",
		Usage: usage + " `D`, such as 6h, or by a time such as Friday 17:00" + more}
}

// deadlineOf reads the flag --deadline, which is either a positive duration or an instant; the other one is zero. An
// instant is sent to corrald as one, so that a request repeated with its key remains the same.
func deadlineOf(c *cli.Context, now time.Time) (within corral.Seconds, at time.Time, err error) {
	if !c.IsSet("deadline") {
		return 0, at, corral.ErrorAt(corral.Invalid, "--deadline", "is missing: give a duration such as 6h, or a time "+
			"such as Friday 17:00")
	}
	within, at, err = api.ReadDeadline(c.String("deadline"), now)
	if err != nil {
		return 0, at, corral.ErrorAt(corral.Invalid, "--deadline", "%w", err)
	}
	return within, at, nil
}

// sayDeadline prints how a deadline that is an instant was understood.
func (p *printer) sayDeadline(at time.Time) {
	if !at.IsZero() {
		p.say("deadline: %s", at.Local().Format("Mon 2006-01-02 15:04:05 MST"))
	}
}

// deadlineFromNow reads the flag --deadline as a duration from now.
func deadlineFromNow(c *cli.Context) (corral.Seconds, error) {
	now := time.Now()
	within, at, err := deadlineOf(c, now)
	return plan.Goal{Deadline: within, DeadlineAt: at}.From(now).Deadline, err
}

// momentOf reads an instant, which is not in the past, or a duration. It returns the duration from now in both cases,
// and the instant as at, which is zero if the text is a duration.
func momentOf(flag, text string, now time.Time) (d time.Duration, at time.Time, err error) {
	if d, at, err = timetext.Moment(text, now, timetext.Duration); err != nil {
		err = corral.ErrorAt(corral.Invalid, flag, "%w", err)
	}
	return d, at, err
}

// notBeforeFlag is a flag for the earliest submission of what; notBeforeOf reads it.
func notBeforeFlag(what string) cli.Flag {
	return &cli.StringFlag{Name: "not-before",
		Usage: "submit " + what + " before `TIME`, such as tomorrow 09:00, or for a duration such as 2h"}
}

// notBeforeOf reads the flag --not-before, which is either a duration from now or an instant; the other one is zero.
func notBeforeOf(c *cli.Context, now time.Time) (in time.Duration, at time.Time, err error) {
	if !c.IsSet("not-before") {
		return 0, at, nil
	}
	in, at, err = momentOf("--not-before", c.String("not-before"), now)
	switch {
	case err == nil && !at.IsZero():
		return 0, at.UTC(), nil
	case err == nil && in < 0:
		err = corral.ErrorAt(corral.Invalid, "--not-before", "%s is negative", in)
	}
	return in, at, err
}

// maxAhead is the maximum time by which a time may be in the future.
const maxAhead = 10 * 366 * 24 * time.Hour

// fromNow reads a time, or a duration from now, and returns the duration in whole seconds; an empty text means now.
func fromNow(flag, text string, now time.Time) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, _, err := momentOf(flag, text, now)
	if err != nil {
		return 0, err
	}
	if d = d.Truncate(time.Second); d < 0 || d > maxAhead {
		return 0, corral.ErrorAt(corral.Invalid, flag, "%s is not within ten years from now", text)
	}
	return d, nil
}

// parseTime reads a time that is not before now, in UTC; an empty text yields the zero time.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := timetext.Ahead(text, now)
	if err != nil {
		return time.Time{}, corral.ErrorAt(corral.Invalid, flag, "%w", err)
	}
	return t.UTC(), nil
}

// timeOrAgo reads a time, which may be in the past, or a duration before now, and returns the time in UTC; an empty
// text yields the zero time.
func timeOrAgo(flag, text string, now time.Time) (at time.Time, err error) {
	if text == "" {
		return time.Time{}, nil
	}
	if timetext.Instant(text) {
		at, err = timetext.Back(text, now)
	} else {
		var ago time.Duration
		if ago, err = timetext.Duration(text); err == nil && ago < 0 {
			err = fmt.Errorf("%s is negative: write how long ago", ago)
		}
		at = now.Add(-ago)
	}
	if err != nil {
		return time.Time{}, corral.ErrorAt(corral.Invalid, flag, "%w", err)
	}
	return at.UTC(), nil
}
