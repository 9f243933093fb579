package cli

// profile baseline measures a command several times. A site's speed factor is learned relative to this measurement, and
// machines with other clock rates are compared with it. A trace shows the resources that one run uses; a baseline shows
// how long runs take, and how much their durations vary.

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/baseline"
)

// baselineCommand measures a command on this machine.
func (v profileVerbs) baselineCommand() *cli.Command {
	return &cli.Command{
		Name: "baseline",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "repeat", Value: 5, Usage: "run it `N` times, one after the other"},
		},
		Action: func(c *cli.Context) error {
			n := c.Int("repeat")
			if n < 1 || n > 10_000 {
				return corral.ErrorAt(corral.Invalid, "--repeat", "%d is not between 1 and 10000", n)
			}
			b, err := baseline.Measure(c.Context, c.Args().Slice(), n)
			if err != nil {
				return err
			}
			// The user has to be informed if only times are known, because they cannot be compared with another
			// machine's times.
			if b.Why != "" {
				v.say("only times are known: %s", b.Why)
			}
			return baselineTable.show(v.printer, b)
		},
	}
}

var baselineTable = listing[baseline.Baseline]{
	id: func(b baseline.Baseline) string { return fmt.Sprint(b.Wall.Mean) },
	columns: []column[baseline.Baseline]{
		{"command", func(b baseline.Baseline) any { return strings.Join(b.Command, " ") }},
		{"runs", func(b baseline.Baseline) any { return b.Runs }},
		{"source", func(b baseline.Baseline) any { return b.Source }},
		{"seconds", func(b baseline.Baseline) any { return spreadOf(&b.Wall, 1, "") }},
		{"instructions", func(b baseline.Baseline) any { return spreadOf(b.Instructions, 1e6, " M") }},
		{"cycles", func(b baseline.Baseline) any { return spreadOf(b.Cycles, 1e6, " M") }},
		{"per cycle", func(b baseline.Baseline) any {
			return choose(b.PerCycle == 0, "", fmt.Sprintf("%.2f", b.PerCycle))
		}},
		{"clock", func(b baseline.Baseline) any {
			return choose(b.ClockHz == 0, "", fmt.Sprintf("%.2f GHz", b.ClockHz/1e9))
		}},
	},
}

// spreadOf returns a mean with its deviation, divided by unit.
func spreadOf(s *baseline.Spread, unit float64, name string) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%.4g ± %.2g%s", s.Mean/unit, s.SD/unit, name)
}
