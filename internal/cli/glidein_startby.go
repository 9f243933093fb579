package cli

// glidein create --start-by makes a virtual reservation (plan/planner/virtual) in a site's ordinary queue. corrald
// receives an ordinary request: the time of submission, the walltime and the longest wait are computed here, based on
// the waits that corrald has observed at the site.

import (
	"cmp"
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/queueing"
	"github.com/corral-pilot/corral/plan/planner/virtual"
)

// startingBy returns a function that creates a glidein to run by a given time: the glidein is submitted early enough to
// have started by then with high probability, its walltime is extended accordingly, and it is cancelled if it waits
// longer (plan/planner/virtual). The returned function prints the probability.
func (v glideinVerbs) startingBy(
	c *cli.Context,
) func(*api.Client, context.Context, api.NewGlidein, string) (corral.Glidein, error) {
	return func(cl *api.Client, ctx context.Context, in api.NewGlidein, key string) (g corral.Glidein, err error) {
		for _, flag := range []string{"not-before", "queue-timeout"} {
			if c.IsSet(flag) {
				return g, corral.ErrorAt(corral.Invalid, "--"+flag,
					"cannot be used with --start-by, which determines it")
			}
		}
		if in.Resubmit != "never" {
			return g, corral.ErrorAt(corral.Invalid, "--resubmit", "with --start-by a glidein is submitted once")
		}
		now := time.Now().UTC().Truncate(time.Second)
		within, err := fromNow("--start-by", c.String("start-by"), now)
		if err != nil {
			return g, err
		}
		site, err := cl.Site(ctx, in.Site)
		if err != nil {
			return g, err
		}
		waits, err := cl.SiteEachWait(ctx, in.Site)
		if err != nil {
			return g, err
		}
		waits = queueing.In(cmp.Or(in.Queue, site.Queue), waits)
		wanted := virtual.Wanted{Start: within, Length: time.Duration(in.Walltime), Processors: in.Hosts * in.CPUs}
		waited := queueing.NewPredictor(waits, now)
		// If no waits have been observed, all times of submission are equally good, and the first time that the queue's
		// limit allows is chosen.
		chances := func(n int, walltime, within time.Duration) float64 {
			if share, known := waited.Estimate(n, walltime, within); known {
				return share
			}
			return 1 // this time is as good as any other
		}
		queue, _ := site.Facts.In(cmp.Or(in.Queue, site.Queue))
		early, err := virtual.Plan(0, wanted, time.Duration(queue.MaxWalltime), chances)
		if err != nil {
			return g, err
		}
		// The glidein waits no later than the requested start, because after that it might run when it is not needed.
		if early.At > 0 {
			in.NotBefore = now.Add(early.At)
		}
		in.Walltime, in.QueueLimit = corral.Seconds(early.Walltime), corral.Seconds(max(time.Second, within-early.At))
		if g, err = cl.CreateGlidein(ctx, in, key); err != nil {
			return g, err
		}
		odds := "with unknown probability, since no similar pilot has waited there"
		if _, known := waited.Estimate(wanted.Processors, early.Walltime, within-early.At); known {
			odds = "with a probability of " + percent(early.Chance) + ", by " + plural(len(waits), "wait")
		}
		v.say("it is submitted %s for %s, and starts by %s %s; otherwise it is cancelled", startIn(early.At),
			brief(in.Walltime), now.Add(within).Format(time.RFC3339), odds)
		return g, nil
	}
}

func startIn(d time.Duration) string {
	if d == 0 {
		return "now"
	}
	return "in " + brief(corral.Seconds(d))
}
