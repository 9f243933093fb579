package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
		switch {
		case time.Now().Before(l.stuck[c.Job.Tag].at):
		case c.Job.Kind == corral.PilotJob:
			pilots = append(pilots, c.Job)
		default:
			others = append(others, c.Job)
		}
	}
	return errors.Join(l.cancelJobs(ctx, site, others), l.cancelJobs(ctx, site, pilots))
}

// cancelJobs ends jobs of one batch system, with one command if it can do that. Those that do not end are no trouble of
// the site's, which must go on for the others: they are tried again later.
func (l *siteLoop) cancelJobs(ctx context.Context, site corral.Site, jobs []corral.Job) error {
	if len(jobs) == 0 || !l.take() {
		return nil
	}
	l.busy(time.Now())
	l.lastPoll = time.Time{} // those that are gone must be seen, or the next step would cancel them again
	begin := time.Now()
	var err error
	batch := l.access.Batch(jobs[0].Kind)
	if many, ok := batch.(gridsite.Many); ok {
		if len(jobs) > manyAtOnce {
			jobs, l.more = jobs[:manyAtOnce], true
		}
		err = many.CancelMany(ctx, tagsOf(jobs), cancelGrace)
	} else {
		err = cancelEach(ctx, batch, jobs)
	}
	if err == nil || ctx.Err() != nil || site.State == corral.SiteDeleted { // which is given up
		return err
	}
	l.e.lg.Warn("jobs do not end", "site", site.Name, "err", err)
	for _, j := range jobs {
		if err := l.leaveAlone(ctx, j, err, time.Since(begin)); err != nil {
			return err
		}
	}
	return nil
}

// leaveAlone has a job that does not end asked again later, longer each time, and not for most of the time where that
// takes long; its history says why it does not end, if err knows.
func (l *siteLoop) leaveAlone(ctx context.Context, j corral.Job, err error, took time.Duration) error {
	r := l.stuck[j.Tag]
	r.pause = max(cancelGrace, min(2*r.pause, troubleMax), pollShare*took)
	r.at = time.Now().Add(r.pause)
	before := r.why
	for why := range strings.Lines(err.Error()) {
		if strings.Contains(why, j.Tag) {
			r.why = strings.TrimSpace(why)
		}
	}
	l.stuck[j.Tag] = r
	if r.why == before {
		return nil
	}
	return l.noteJob(ctx, j, "stuck", r.why)
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
				errs[i] = fmt.Errorf("cancelling %s: %w", j.Tag, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
