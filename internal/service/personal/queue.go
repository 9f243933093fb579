package personal

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
)

// askTime is the time limit for a pool's answer about its queue.
const askTime = 20 * time.Second

// Queued lists the jobs in the queues of our pools. It is called when all runs are over, so these are jobs that
// people submitted themselves, which would be lost with the pool. An attached pool continues without Corral and is
// not queried.
func (c Corrald) Queued(ctx context.Context, cl *api.Client) (jobs []string, err error) {
	clusters, err := cl.Clusters(ctx, api.Filter{})
	if err != nil {
		return nil, err
	}
	for _, k := range clusters {
		if k.Kind != corral.Condor || k.Attached || k.State != corral.ClusterReady {
			continue
		}
		ids, err := c.queued(ctx, cl, k)
		if err != nil {
			return nil, corral.Errorf(corral.Unknown,
				"the queue of cluster %s does not answer (--force does not ask): %w", k.Name, err)
		}
		const named = 5
		if len(ids) > named {
			ids = append(ids[:named], fmt.Sprintf("%d more", len(ids)-named))
		}
		if len(ids) > 0 {
			jobs = append(jobs, fmt.Sprintf("%s (cluster %s)", strings.Join(ids, " "), k.Name))
		}
	}
	return jobs, nil
}

// queued queries a pool's schedd with the pool's own program, as the pool's own user.
func (c Corrald) queued(ctx context.Context, cl *api.Client, k corral.Cluster) (ids []string, err error) {
	env, err := cl.ClusterEnv(ctx, fmt.Sprint(k.ID))
	if err != nil {
		return nil, err
	}
	_, u, err := c.user()
	if err != nil {
		return nil, err
	}
	if len(env.Path) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	// Neither removed nor completed, and not worker jobs, which belong to corrald and are idle without runs.
	const waiting = "JobStatus =!= 3 && JobStatus =!= 4 && " + jobfiles.StreamAttribute + " is undefined"
	cmd := exec.CommandContext(ctx, filepath.Join(env.Path[0], "condor_q"), "-allusers", "-constraint", waiting,
		"-format", "%d.", "ClusterId", "-format", "%d\n", "ProcId")
	cmd.Dir = "/"
	for _, v := range env.Variables {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	u.Run(cmd)
	out, err := cmd.Output()
	return strings.Fields(string(out)), err
}
