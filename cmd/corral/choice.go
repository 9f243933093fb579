package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
)

// A choice is which objects a command line names: by id, or by labels.
type choice[T ~int64] struct {
	ids    []T
	labels map[string]string
}

// chosen reads the choice: either arguments or -l.
func chosen[T ~int64](c *cli.Context, noun string) (which choice[T], err error) {
	if which.labels, err = parseLabels("-l", c.StringSlice("l")); err != nil {
		return which, err
	}
	if (c.NArg() > 0) == (len(which.labels) > 0) {
		return which, corral.Errorf(corral.Invalid, "want either %s ids or -l k=v; see `%s --help`", noun, c.Command.HelpName)
	}
	which.ids, err = parseIDs[T](noun, c.Args().Slice())
	return which, err
}

// countDown returns a function that says how much of d is left, never 0; it is 0 (no limit) always if d
// is.
func countDown(d time.Duration) func() time.Duration {
	var end time.Time
	return func() time.Duration {
		if d == 0 || end.IsZero() { // who waits first has all of it, and says so
			end = time.Now().Add(d)
			return d
		}
		return max(time.Millisecond, time.Until(end))
	}
}
