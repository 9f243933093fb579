package provision

import (
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/work/request"
	"github.com/corral-pilot/corral/plan"
)

// Present lists the workers of a cluster that were not requested by a plan, each as a pilot of one host; a plan uses
// these workers first. Resources used by running tasks are not included. glideins are the cluster's glideins; at maps
// the id of each worker to its position in the list.
func Present(glideins []corral.Glidein, workers []corral.Worker, now time.Time) (all []plan.Present,
	at map[string]int) {
	return present(glideins, workers, "", now)
}

// present is like Present, but also includes the workers that one plan has requested.
func present(glideins []corral.Glidein, workers []corral.Worker, ours string, now time.Time) (all []plan.Present,
	at map[string]int) {
	free := map[corral.GlideinID]corral.Glidein{}
	for _, g := range glideins {
		if label := g.Labels[corral.PlanLabel]; (label == "" || label == ours) && g.Asked == corral.AskNothing {
			free[g.ID] = g
		}
	}
	at = map[string]int{}
	for _, w := range workers {
		g, ok := free[w.Glidein]
		left := plan.Unbounded
		if !w.EndsAt.IsZero() {
			left = w.EndsAt.Sub(now).Round(time.Millisecond)
		}
		if !ok || !w.Connected || w.Draining || left <= 0 {
			continue
		}
		p := plan.Present{Site: g.SiteName, Hosts: 1, Told: w.Speed, End: left, Keep: plan.Unbounded}
		p.Host = corral.Resources{
			CPUs: w.CPUsFree, MemoryMiB: request.OrUnlimited(w.MemoryMiB), GPUs: g.GPUs, DiskMiB: plan.Unlimited,
		}
		if g.Idle > 0 && w.RunningTasks == 0 {
			p.Keep = max(time.Duration(g.Idle), stayLeft(g, now))
		}
		at[w.ID] = len(all)
		all = append(all, p)
	}
	return all, at
}
