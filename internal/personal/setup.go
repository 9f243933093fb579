package personal

import (
	"context"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// SetUp makes the cluster and the site that a personal corrald has from the start, where they are
// missing, and returns once the site is READY.
func SetUp(ctx context.Context, cl *api.Client) (corral.Site, error) {
	if _, err := cl.Cluster(ctx, Cluster); corral.KindOf(err) == corral.NotFound {
		_, err = cl.CreateCluster(ctx, api.NewCluster{Name: Cluster, Kind: corral.Embedded}, "")
		if err != nil {
			return corral.Site{}, fmt.Errorf("making cluster %s: %w", Cluster, err)
		}
	} else if err != nil {
		return corral.Site{}, err
	}
	if _, err := cl.Site(ctx, Site); corral.KindOf(err) == corral.NotFound {
		_, err = cl.CreateSite(ctx, api.NewSite{Name: Site, Contact: "local:", Batch: "fork"}, "")
		if err != nil {
			return corral.Site{}, fmt.Errorf("making site %s: %w", Site, err)
		}
	} else if err != nil {
		return corral.Site{}, err
	}
	return cl.WaitSite(ctx, Site, string(corral.SiteReady), startTimeout)
}

// A TakenDown says what taking everything down did.
type TakenDown struct {
	Glideins  int
	Cancelled []corral.RunID
	Left      []string // what could not be removed, one line each
}

// removeTimeout is how long one site may take to be cleaned up.
const removeTimeout = time.Minute

// TakeDown removes everything that corrald keeps at sites and in clusters. With unfinished runs it
// refuses, naming them, unless force, which cancels them.
func TakeDown(ctx context.Context, cl *api.Client, force bool) (t TakenDown, err error) {
	if t.Cancelled, err = endRuns(ctx, cl, force); err != nil {
		return t, err
	}
	glideins, err := cl.Glideins(ctx, api.Filter{})
	if err != nil {
		return t, err
	}
	for _, g := range glideins {
		if g.State.Terminal() {
			continue
		}
		if _, err := cl.RemoveGlidein(ctx, g.ID, false); err != nil {
			return t, err
		}
		t.Glideins++
	}
	if t.Left, err = removeSites(ctx, cl); err != nil {
		return t, err
	}
	clusters, err := cl.Clusters(ctx, api.Filter{})
	if err != nil {
		return t, err
	}
	for _, k := range clusters {
		if _, err := cl.RemoveCluster(ctx, k.Name); err != nil {
			return t, err
		}
	}
	return t, nil
}

// endRuns cancels what runs, or refuses to.
func endRuns(ctx context.Context, cl *api.Client, force bool) (cancelled []corral.RunID, err error) {
	runs, err := cl.Runs(ctx, api.Filter{States: []string{string(corral.RunRunning), string(corral.RunCancelling)}})
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		cancelled = append(cancelled, r.ID)
	}
	if len(runs) > 0 && !force {
		return nil, corral.Errorf(corral.Conflict, "unfinished runs: %v: wait for them, cancel them, or use --force", cancelled)
	}
	for _, id := range cancelled {
		if _, err := cl.CancelRun(ctx, id); err != nil && corral.KindOf(err) != corral.Conflict {
			return nil, err
		}
		if _, err := cl.WaitRun(ctx, id, removeTimeout); err != nil {
			return nil, err
		}
	}
	return cancelled, nil
}

// removeSites removes all sites; a silent one is forgotten, and what it keeps is listed.
func removeSites(ctx context.Context, cl *api.Client) (left []string, err error) {
	sites, err := cl.Sites(ctx, api.Filter{})
	if err != nil {
		return nil, err
	}
	for _, s := range sites {
		if _, err := cl.RemoveSite(ctx, fmt.Sprint(s.ID), false); err != nil {
			return nil, err
		}
	}
	for _, s := range sites {
		_, err := cl.WaitSite(ctx, fmt.Sprint(s.ID), string(corral.SiteDeleted), removeTimeout)
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return left, ctx.Err()
		}
		left = append(left, fmt.Sprintf("site %s keeps %s: %v", s.Name, s.Root, err))
		if _, err := cl.RemoveSite(ctx, fmt.Sprint(s.ID), true); err != nil {
			return left, err
		}
	}
	return left, nil
}
