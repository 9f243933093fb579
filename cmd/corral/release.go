package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// releasedPilots are the states in which a pilot holds nothing any more.
var releasedPilots = strings.Join([]string{string(corral.GlideinDeleted), string(corral.GlideinFinished),
	string(corral.GlideinFailed)}, ",")

// releasePlan lets a plan's pilots go and, if asked, waits until none of them is left.
func releasePlan(c *cli.Context, cl *api.Client, id corral.PlanID) (corral.Plan, error) {
	row, err := cl.ReleasePlan(c.Context, id)
	if err != nil || !c.Bool("wait") {
		return row, err
	}
	return row, awaitReleased(c.Context, cl, id, c.Duration("timeout"))
}

// awaitReleased waits until none of a plan's pilots is left; the timeout is for all of them together; 0: no limit.
func awaitReleased(ctx context.Context, cl *api.Client, id corral.PlanID, timeout time.Duration) error {
	began := time.Now()
	pilots, err := cl.Glideins(ctx, api.Filter{Labels: map[string]string{"plan": fmt.Sprint(id)}})
	for _, g := range pilots {
		if err != nil {
			return err
		}
		if !g.State.Terminal() {
			_, err = cl.WaitGlidein(ctx, g.ID, releasedPilots, unspent(timeout, time.Since(began)))
		}
	}
	return err
}

// unspent is what is left of a timeout, at least a millisecond: 0 is no limit.
func unspent(timeout, spent time.Duration) time.Duration {
	if timeout == 0 {
		return 0
	}
	return max(time.Millisecond, (timeout - spent).Round(time.Millisecond))
}
