package provision

import (
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan"
)

// Label is the label by which a glidein names the plan that asked for it.
const Label = "plan"

// Glideins returns the requests that a plan's pilots become. Times count from BeganAt; a pilot that is due at once has
// none.
func Glideins(p *plan.Plan, row corral.Plan) []api.NewGlidein {
	all := make([]api.NewGlidein, len(p.Pilots))
	for i, q := range p.Pilots {
		all[i] = api.NewGlidein{
			Site: q.Site, Cluster: row.ClusterName, Hosts: q.Hosts, CPUs: q.CPUs, MemoryMiB: q.MemoryMiB, GPUs: q.GPUs,
			Walltime: q.Walltime, Idle: plan.LeaveAfter,
			BatchOptions: corral.BatchOptions{Queue: q.Queue},
			Labels:       labelled(row),
		}
		all[i].Labels["pilot"] = strconv.Itoa(i)
		if q.Submit > 0 {
			all[i].NotBefore = row.BeganAt.Add(time.Duration(q.Submit))
		}
	}
	return all
}
