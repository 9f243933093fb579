package cli

// The pilots of a plan are requested (applied) and released together.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/progress"
)

// releasedStates lists the states in which a pilot no longer holds any resources.
var releasedStates = strings.Join([]string{string(corral.GlideinDeleted), string(corral.GlideinFinished),
	string(corral.GlideinFailed)}, ",")

// applyCommand requests the pilots of a stored plan.
func (v planVerbs) applyCommand() *cli.Command {
	return plans.verb("apply", func(c *cli.Context, cl *api.Client, id corral.PlanID) error {
		row, err := cl.ProvisionPlan(c.Context, id)
		if err == nil {
			err = v.showRow(row) // printed before the wait, which may fail or be interrupted
		}
		if err != nil || !c.Bool("wait") {
			return err
		}
		return v.awaitProvisioned(c, cl, id)
	}, applyWaitFlag(), timeoutFlag())
}

func applyWaitFlag() cli.Flag {
	return waitFlag("the workers of the pilots that come first are registered")
}

// provisionCommand is the former name of plan apply.
func (v planVerbs) provisionCommand() *cli.Command {
	c := v.applyCommand()
	apply := c.Action
	c.Name, c.Hidden = "provision", true
	c.Action = func(c *cli.Context) error {
		fmt.Fprintln(v.err, "corral: `corral provision` is now `corral plan apply`")
		return apply(c)
	}
	return c
}

// checkApply refuses flags that have no meaning without --apply, or with it.
func checkApply(c *cli.Context) error {
	switch {
	case c.Bool("wait") && !c.Bool("apply"):
		return corral.ErrorAt(corral.Invalid, "--wait", "requires --apply: a plan by itself requests no pilots")
	case c.Bool("apply") && c.Bool("dry-run"):
		return corral.ErrorAt(corral.Invalid, "--apply", "cannot be used with --dry-run")
	}
	return nil
}

// createPlan creates a plan. If its pilots are requested, too, the command can be interrupted only until corrald has
// had the time to answer with the plan's id.
func createPlan(cl *api.Client, ctx context.Context, in api.NewPlan, key string) (corral.Plan, error) {
	if in.Apply {
		lasting, cancel := outlasting(ctx)
		defer cancel()
		ctx = lasting
	}
	return cl.CreatePlan(ctx, in, key)
}

// releasePlan releases a plan's pilots and, with --wait, waits until none is left.
func releasePlan(c *cli.Context, cl *api.Client, id corral.PlanID) (corral.Plan, error) {
	row, err := cl.ReleasePlan(c.Context, id)
	if err != nil || !c.Bool("wait") {
		return row, err
	}
	return row, awaitReleased(c.Context, cl, id, c.Duration("timeout"))
}

// awaitProvisioned waits for the workers of the pilots of a plan that are submitted first. The timeout applies to all
// of these pilots together; 0 means no limit.
func (v planVerbs) awaitProvisioned(c *cli.Context, cl *api.Client, id corral.PlanID) error {
	began, timeout := time.Now(), c.Duration("timeout")
	pilots, err := cl.Glideins(c.Context, api.Filter{Labels: map[string]string{"plan": fmt.Sprint(id)}})
	for _, g := range soonest(pilots) {
		if err != nil {
			break
		}
		_, err = v.follow(c.Context, cl, g.ID, progress.Condition{Until: api.UntilWorkers,
			Timeout: remaining(timeout, time.Since(began))})
	}
	if err != nil {
		v.say("plan %d stays PROVISIONED: release its pilots with `corral plan release %d`", id, id)
	}
	return err
}

// soonest returns the glideins with the earliest NotBefore, where a zero time is the earliest. It considers only
// glideins that are not over, if there are any.
func soonest(all []corral.Glidein) (first []corral.Glidein) {
	over := func(g corral.Glidein) bool { return g.State.Terminal() }
	if live := slices.DeleteFunc(slices.Clone(all), over); len(live) > 0 {
		all = live
	}
	for _, g := range all {
		if len(first) > 0 && g.NotBefore.Before(first[0].NotBefore) {
			first = nil
		}
		if len(first) == 0 || g.NotBefore.Equal(first[0].NotBefore) {
			first = append(first, g)
		}
	}
	return first
}

// awaitReleased waits until none of a plan's pilots is left. The timeout applies to all pilots together; 0 means no
// limit.
func awaitReleased(ctx context.Context, cl *api.Client, id corral.PlanID, timeout time.Duration) error {
	began := time.Now()
	pilots, err := cl.Glideins(ctx, api.Filter{Labels: map[string]string{"plan": fmt.Sprint(id)}})
	for _, g := range pilots {
		if err != nil {
			return err
		}
		if !g.State.Terminal() {
			_, err = cl.WaitGlidein(ctx, g.ID, releasedStates, remaining(timeout, time.Since(began)))
		}
	}
	return err
}

// remaining returns the remaining part of a timeout, which is at least a millisecond because 0 means no limit.
func remaining(timeout, spent time.Duration) time.Duration {
	if timeout == 0 {
		return 0
	}
	return max(time.Millisecond, (timeout - spent).Round(time.Millisecond))
}
