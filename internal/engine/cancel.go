package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/reconcile"
)

// cancelsAtOnce bounds how many jobs are ended at the same time where each needs a command of its own: a process or a
// round trip at the site for as long as the job takes to leave.
const cancelsAtOnce = 8

// cancel ends jobs, all at the same time, and returns when the site says that they are gone, or that some must wait for
// a later step.
func (l *siteLoop) cancel(ctx context.Context, site corral.Site, cancels []reconcile.Cancel) error {
	if len(cancels) == 0 {
		return nil
	}
	for _, c := range cancels {
		if err := l.ask(ctx, site, c.Job, corral.AskCancel, c); err != nil {
			return err
		}
	}
	if err := l.open(ctx, site); err != nil {
		return err
	}
	var pilots, others []corral.Job
	for _, c := range cancels {
		if c.Job.Kind == corral.PilotJob {
			pilots = append(pilots, c.Job)
		} else {
			others = append(others, c.Job)
		}
	}
	return errors.Join(l.cancelJobs(ctx, others), l.cancelJobs(ctx, pilots))
}

// cancelJobs ends jobs of one batch system, with one command if it can do that.
func (l *siteLoop) cancelJobs(ctx context.Context, jobs []corral.Job) error {
	if len(jobs) == 0 || !l.take() {
		return nil
	}
	batch := l.access.Batch(jobs[0].Kind)
	many, ok := batch.(gridsite.Many)
	if !ok {
		return cancelEach(ctx, batch, jobs)
	}
	if len(jobs) > manyAtOnce {
		jobs, l.more = jobs[:manyAtOnce], true
	}
	l.busy(time.Now()) // those that are gone must be seen, or the next step would cancel them again
	return many.CancelMany(ctx, tagsOf(jobs), cancelGrace)
}

// cancelEach ends jobs with a command each.
func cancelEach(ctx context.Context, batch gridsite.Batch, jobs []corral.Job) error {
	errs := make([]error, len(jobs))
	slots := make(chan struct{}, cancelsAtOnce)
	var all sync.WaitGroup
	for i, j := range jobs {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if err := batch.Cancel(ctx, j.Tag, cancelGrace); err != nil {
				errs[i] = fmt.Errorf("cancelling %s: %w", j.Name(), err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
