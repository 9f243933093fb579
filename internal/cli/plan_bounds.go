package cli

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// boundFlags returns the flags for the bounds of a plan's pilots.
func boundFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "max-cpus", Usage: "hold at most `N` cpus at once, those of the cluster's pilots included"},
		&cli.IntFlag{Name: "max-pilots", Usage: "request at most `N` pilots"},
		&cli.StringFlag{Name: "not-before",
			Usage: "submit no pilot before `TIME`: +2h from now, or 2026-12-01T08:00:00Z"},
		&cli.BoolFlag{Name: "static", Usage: "hold all pilots from the beginning to the end, with hosts of one size"},
	}
}

// boundsOf reads the values of boundFlags.
func boundsOf(c *cli.Context) (b plan.Bounds, err error) {
	b = plan.Bounds{MaxCPUs: c.Int("max-cpus"), MaxPilots: c.Int("max-pilots"), Static: c.Bool("static")}
	switch {
	case c.IsSet("max-cpus") && b.MaxCPUs < 1:
		return b, corral.ErrorAt(corral.Invalid, "--max-cpus", "%d is not a number of cpus: want 1 or more", b.MaxCPUs)
	case c.IsSet("max-pilots") && b.MaxPilots < 1:
		return b, corral.ErrorAt(corral.Invalid, "--max-pilots", "%d is not a number of pilots: want 1 or more",
			b.MaxPilots)
	}
	if c.IsSet("not-before") {
		in, err := timeUntil(c.String("not-before"), time.Now())
		if b.NotBefore = corral.Seconds(in); err != nil {
			return b, corral.ErrorAt(corral.Invalid, "--not-before", "%w", err)
		}
	}
	return b, nil
}

// timeUntil returns the time from now until an instant, which is given as a time from now (+2h or 2h) or in RFC 3339.
// An instant in the past is an error.
func timeUntil(text string, now time.Time) (time.Duration, error) {
	in, err := time.ParseDuration(strings.TrimPrefix(text, "+"))
	if err != nil {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return 0, corral.Errorf(corral.Invalid, "%q is not a time: want one such as +2h, from now, or "+
				"2026-12-01T08:00:00Z", text)
		}
		in = at.Sub(now)
	}
	if in < 0 {
		return 0, corral.Errorf(corral.Invalid, "%s is in the past", text)
	}
	return in.Round(time.Millisecond), nil
}
