package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/store"
)

// avoid has an attempt keep away from nodes on which others failed, and says so in its history.
func (l *siteLoop) avoid(ctx context.Context, site corral.Site, job corral.Job, spec *gridsite.JobSpec) error {
	if job.Kind != corral.PilotJob {
		return nil
	}
	var bad []corral.BadNode
	err := l.e.db.View(ctx, func(tx *store.Tx) (err error) {
		bad, err = tx.BadNodes(site, job.Queue, spec.Hosts)
		return err
	})
	if err != nil {
		return fmt.Errorf("looking for bad nodes of site %s: %w", site.Name, err)
	}
	if len(bad) == 0 {
		return nil
	}
	var why []string
	for _, b := range bad {
		spec.Exclude = append(spec.Exclude, b.Node)
		why = append(why, b.String())
	}
	return l.noteJob(ctx, job, "avoid", "the batch system is asked for other nodes than "+strings.Join(why, ", "))
}

// submitJob hands a job to its batch system. One that does not take the names of the nodes to avoid, because it knows
// the nodes by others, is asked once more without.
func (l *siteLoop) submitJob(ctx context.Context, job corral.Job, spec gridsite.JobSpec) (id string, err error) {
	batch := l.access.Batch(job.Kind)
	id, err = batch.Submit(ctx, spec)
	if len(spec.Exclude) == 0 || refusal(err) == nil {
		return id, err
	}
	l.e.lg.Warn("refused, and asked again without nodes to avoid", "job", job.Tag, "nodes", spec.Exclude, "err", err)
	spec.Exclude = nil
	return batch.Submit(ctx, spec)
}

// newHosts returns on which hosts workers have come to life since that was recorded last.
func (l *siteLoop) newHosts(workers []corral.Worker) map[string]time.Time {
	hosts := map[string]time.Time{}
	for _, w := range workers {
		if w.RegisteredAt.After(l.worked[w.Host]) && w.RegisteredAt.After(hosts[w.Host]) {
			hosts[w.Host] = w.RegisteredAt
		}
	}
	return hosts
}
