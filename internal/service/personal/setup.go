package personal

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// SetUp creates the initial cluster and site of a personal corrald if they are missing, and returns once the site is
// READY. It may be called repeatedly, and by several programs at once: the second one finds the objects that the first
// one has created.
func SetUp(ctx context.Context, cl *api.Client) (corral.Site, error) {
	_, err := cl.Cluster(ctx, Cluster)
	if corral.KindOf(err) == corral.NotFound {
		_, err = cl.CreateCluster(ctx, api.NewCluster{Name: Cluster, Kind: corral.Embedded}, "")
	}
	if err := unlessThere(err); err != nil {
		return corral.Site{}, fmt.Errorf("creating cluster %s: %w", Cluster, err)
	}
	site, err := cl.Site(ctx, Site)
	if corral.KindOf(err) == corral.NotFound || site.State == corral.SiteDeleted {
		_, err = cl.CreateSite(ctx, api.NewSite{Name: Site, Contact: "local:", Batch: corral.ForkBatch}, "")
	}
	if err := unlessThere(err); err != nil {
		return corral.Site{}, fmt.Errorf("creating site %s: %w", Site, err)
	}
	return cl.WaitSite(ctx, Site, string(corral.SiteReady), startTimeout)
}

// unlessThere returns a creation's error, unless the object was created meanwhile.
func unlessThere(err error) error {
	if corral.KindOf(err) == corral.Conflict {
		return nil
	}
	return err
}

// A Down configures TakeDown.
type Down struct {
	Force bool // cancel unfinished runs, and forget queued jobs
	// Queued lists the jobs that people submitted to the clusters' queues themselves; nil: queues are not checked.
	Queued   func(ctx context.Context, cl *api.Client) ([]string, error)
	Patience time.Duration // time limit for one run, one site or one cluster; 0: a minute
}

// A TakenDown is the result of TakeDown.
type TakenDown struct {
	Glideins  int // number of glideins released
	Cancelled []corral.RunID
	Left      []string // objects that could not be removed, one line each
}

// TakeDown removes everything that corrald keeps at sites and in clusters. If there are unfinished runs or queued
// jobs, it returns a Conflict error that lists them unless it is forced. A site that does not answer is forgotten,
// and the files left there are listed.
//
// The order follows from the dependencies: first the users of workers, then the workers, then the sites, whose
// cleanup jobs need corrald, and finally the clusters that the workers belonged to. TakeDown requests the removal of
// all sites before it waits for the first one, and does the same with clusters.
func TakeDown(ctx context.Context, cl *api.Client, how Down) (t TakenDown, err error) {
	how.Patience = cmp.Or(how.Patience, time.Minute)
	if err = endEnsembles(ctx, cl, how); err != nil { // an ensemble would start more runs
		return t, err
	}
	if t.Cancelled, err = endRuns(ctx, cl, how); err != nil {
		return t, err
	}
	if how.Queued != nil && !how.Force {
		jobs, err := how.Queued(ctx, cl)
		if err != nil {
			return t, err
		}
		if len(jobs) > 0 {
			return t, corral.Errorf(corral.Conflict, "queued jobs: %s: wait for them, remove them, or use --force",
				strings.Join(jobs, ", "))
		}
	}
	if err := cmp.Or(endScales(ctx, cl), endPlans(ctx, cl)); err != nil {
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
	if t.Left, err = removeSites(ctx, cl, how.Patience); err != nil {
		return t, err
	}
	left, err := removeClusters(ctx, cl, how.Patience)
	t.Left = append(t.Left, left...)
	return t, err
}

// endEnsembles cancels unfinished ensembles, or refuses to.
func endEnsembles(ctx context.Context, cl *api.Client, how Down) error {
	all, err := cl.Ensembles(ctx, api.Filter{})
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(e record.Ensemble) bool {
		return e.State != record.Running && e.State != record.Ending
	})
	if len(all) > 0 && !how.Force {
		return corral.Errorf(corral.Conflict, "ensemble %d (%s) has not ended: wait for it, cancel it, or use --force",
			all[0].ID, all[0].Name)
	}
	for _, e := range all {
		if _, err := cl.CancelEnsemble(ctx, e.ID); err != nil {
			return err
		}
		if _, err := cl.WaitEnsemble(ctx, e.ID, how.Patience); err != nil {
			return err
		}
	}
	return nil
}

// endScales stops the scaling of all clusters, which would otherwise request workers to replace the removed ones.
func endScales(ctx context.Context, cl *api.Client) error {
	clusters, err := cl.Clusters(ctx, api.Filter{})
	for _, k := range clusters {
		if err == nil {
			_, err = cl.UnscaleCluster(ctx, fmt.Sprint(k.ID))
		}
		if corral.KindOf(err) == corral.NotFound { // it is not scaled
			err = nil
		}
	}
	return err
}

// endPlans releases all plans, because a site cannot be removed while a plan requests pilots there.
func endPlans(ctx context.Context, cl *api.Client) error {
	plans, err := cl.Plans(ctx, api.Filter{})
	for _, p := range plans {
		if err == nil && p.State == corral.PlanProvisioned {
			_, err = cl.ReleasePlan(ctx, p.ID)
		}
	}
	return err
}

// idle reports whether an open run has nothing to do and only waits for more tasks.
func idle(r corral.Run) bool { return r.Open && r.Tasks.Waiting+r.Tasks.Ready+r.Tasks.Running == 0 }

// endRuns cancels unfinished runs, or refuses to.
func endRuns(ctx context.Context, cl *api.Client, how Down) (cancelled []corral.RunID, err error) {
	runs, err := cl.Runs(ctx, api.Filter{States: []string{string(corral.RunRunning), string(corral.RunCancelling)}})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range runs {
		if !idle(r) {
			names = append(names, fmt.Sprintf("%d (%s)", r.ID, r.Workflow))
		}
	}
	if len(names) > 0 && !how.Force {
		return nil, corral.Errorf(corral.Conflict, "unfinished runs: %s: wait for them, cancel them, or use --force",
			strings.Join(names, ", "))
	}
	for _, r := range runs {
		// A Conflict error means that the run has ended in the meantime.
		if _, err := cl.CancelRun(ctx, r.ID); err != nil && corral.KindOf(err) != corral.Conflict {
			return cancelled, err
		}
		if _, err := cl.WaitRun(ctx, r.ID, how.Patience); err != nil {
			return cancelled, err
		}
		cancelled = append(cancelled, r.ID)
	}
	return cancelled, nil
}

// removeSites removes all sites; a site that does not answer is forgotten, and the files left there are listed.
func removeSites(ctx context.Context, cl *api.Client, patience time.Duration) (left []string, err error) {
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
		_, err := cl.WaitSite(ctx, fmt.Sprint(s.ID), string(corral.SiteDeleted), patience)
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

// removeClusters removes all clusters, with the daemons of their pools. It uses ids, because several owners may have
// a cluster of the same name. The remains of a pool that does not end are listed.
func removeClusters(ctx context.Context, cl *api.Client, patience time.Duration) (left []string, err error) {
	clusters, err := cl.Clusters(ctx, api.Filter{})
	if err != nil {
		return nil, err
	}
	for _, k := range clusters {
		if k.State == corral.ClusterRemoving {
			continue
		}
		if _, err := cl.RemoveCluster(ctx, fmt.Sprint(k.ID)); err != nil {
			return nil, err
		}
	}
	for _, k := range clusters {
		_, err := cl.WaitCluster(ctx, fmt.Sprint(k.ID), string(corral.ClusterDeleted), patience)
		switch {
		case ctx.Err() != nil:
			return left, ctx.Err()
		case err != nil:
			left = append(left,
				fmt.Sprintf("the pool of cluster %s (collector %s) did not end: %v", k.Name, k.Collector, err))
		}
	}
	return left, nil
}
