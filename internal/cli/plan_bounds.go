package cli

import (
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
		notBeforeFlag("no pilot"),
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
	in, at, err := notBeforeOf(c, time.Now())
	b.NotBefore, b.NotBeforeAt = corral.Seconds(in.Round(time.Millisecond)), at
	return b, err
}
