package condorpool

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/classad"
	"github.com/corral-pilot/corral/internal/decide/matching"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// jobAttributes lists the attributes that are requested for each waiting job.
var jobAttributes = []string{"RequestCpus", "RequestMemory", "RequestGPUs", "RequestDisk", "CorralRuntime", "JobPrio"}

// idleJobs matches jobs that wait for a worker: idle jobs of the universe whose jobs run on workers. Jobs of other
// universes, such as DAGMan's, run beside the schedd. A new job counts only after a few seconds, because a worker whose
// last job has just ended is still claimed, and so not free, but the schedd assigns the next job to that worker at
// once. Worker jobs do not count; instead the tasks that wait for them count, but the schedd has no record of those.
const idleJobs = "JobStatus == 1 && JobUniverse == 5 && time() - EnteredCurrentStatus >= 3 && " +
	jobfiles.StreamAttribute + " is undefined"

// Waiting returns the requirements of the idle jobs in the queue of a READY cluster, the most urgent first. It
// queries the schedd.
func (p *Keepers) Waiting(ctx context.Context, id corral.ClusterID) ([]matching.Class, error) {
	_, _, tools, err := p.ready(ctx, id)
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	jobs, err := tools.Query(asking, "condor_q", []string{"-allusers", "-constraint", idleJobs}, jobAttributes)
	if err != nil {
		return nil, err
	}
	return classes(jobs), nil
}

// classes counts jobs by their requirements. A requirement that is an expression, such as memory based on earlier use,
// is unknown until the job is matched.
func classes(jobs []classad.Ad) []matching.Class {
	slices.SortStableFunc(jobs, func(a, b classad.Ad) int {
		return cmp.Compare(number(b, "JobPrio"), number(a, "JobPrio"))
	})
	index := map[matching.Resources]int{}
	var all []matching.Class
	for _, ad := range jobs {
		needs := matching.Resources{Resources: corral.Resources{
			CPUs: max(1, number(ad, "RequestCpus")), MemoryMiB: number(ad, "RequestMemory"),
			GPUs: number(ad, "RequestGPUs"), DiskMiB: number(ad, "RequestDisk") >> 10, // KiB
		}}
		needs.Time = duration(ad, "CorralRuntime")
		i, known := index[needs]
		if !known {
			i = len(all)
			index[needs] = i
			all = append(all, matching.Class{Needs: needs})
		}
		all[i].Jobs++
	}
	return all
}

// duration reads a number of seconds, or returns 0 if the ad does not contain it.
func duration(ad classad.Ad, name string) time.Duration {
	value, _ := ad.Lookup(name)
	switch s := value.(type) {
	case int64:
		return time.Duration(s) * time.Second
	case float64:
		return time.Duration(s * float64(time.Second))
	}
	return 0
}

// number reads an integer, or returns 0 if the ad does not contain it.
func number(ad classad.Ad, name string) int {
	n, _ := ad.Int(name)
	return int(n)
}
