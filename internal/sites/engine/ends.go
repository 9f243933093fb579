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
)

const (
	// cancelsAtOnce is the maximum number of jobs ended in parallel if each needs its own command: a process or a
	// round trip at the site that lasts until the job has left.
	cancelsAtOnce = 8

	cancelGrace = 5 * time.Second // between asking a job to leave and forcing it
	cancelTime  = 5 * time.Minute // for all jobs of one command: a batch system may be slow to remove them
)

// A retry schedules the repetition of a request that had no effect.
type retry struct {
	at    time.Time
	pause time.Duration
	why   string
}

// ends tracks jobs that are to be ended. Jobs that fail to end are asked again at increasing intervals; they do not
// count as trouble of the site, which must continue to serve the others.
type ends struct {
	line  *line
	stuck map[string]retry // :: tag of a job that does not end → when to ask again
}

// drop discards the retry that is scheduled for a job.
func (e *ends) drop(j corral.Job) { delete(e.stuck, j.Tag) }

// end ends jobs, except those that were asked too recently. Pilots and the site's own jobs may be in different batch
// systems; a failure of one does not affect the other.
func (e *ends) end(ctx context.Context, w turn, jobs []corral.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	if err := e.line.open(ctx, w.Site); err != nil {
		return err
	}
	var pilots, others []corral.Job
	for _, j := range jobs {
		switch {
		case w.now.Before(e.stuck[j.Tag].at):
		case j.Kind == corral.PilotJob:
			pilots = append(pilots, j)
		default:
			others = append(others, j)
		}
	}
	return errors.Join(e.cancel(ctx, w, others), e.cancel(ctx, w, pilots))
}

// cancel ends jobs of one batch system, with one command if that is supported.
func (e *ends) cancel(ctx context.Context, w turn, jobs []corral.Job) error {
	if len(jobs) == 0 || !e.line.take() {
		return nil
	}
	e.line.pace.busy(w.now)
	e.line.pace.lookAgain() // the end must be observed, or the next step would cancel the jobs again
	took := e.line.stopwatch()
	jobs = e.line.some(jobs)
	err := e.cancelAll(ctx, jobs)
	if err == nil || ctx.Err() != nil || w.Site.State == corral.SiteDeleted { // the jobs of a deleted site are given up
		return err
	}
	e.line.lg.Warn("jobs do not end", "site", w.Site.Name, "err", err)
	lost := took()
	for _, j := range jobs {
		if err := e.leaveAlone(ctx, w.now.Add(lost), j, err, lost); err != nil {
			return err
		}
	}
	return nil
}

// cancelAll ends these jobs, all of one batch system, within cancelTime.
func (e *ends) cancelAll(ctx context.Context, jobs []corral.Job) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cancelTime,
		corral.Errorf(corral.Unavailable, "the site has given no answer for %s (ending jobs)", cancelTime))
	defer cancel()
	batch := e.line.access.Batch(jobs[0].Kind)
	if many, ok := batch.(gridsite.Many); ok {
		return many.CancelMany(ctx, tagsOf(jobs), cancelGrace)
	}
	return cancelEach(ctx, batch, jobs)
}

// leaveAlone schedules the next request to a job that does not end, at increasing intervals and in proportion to the
// time the request took; if err contains a reason, the reason is added to the job's history.
func (e *ends) leaveAlone(ctx context.Context, now time.Time, j corral.Job, err error, took time.Duration) error {
	r := e.stuck[j.Tag]
	r.pause = max(cancelGrace, min(2*r.pause, troubleMax), pollShare*took)
	r.at = now.Add(r.pause)
	before := r.why
	for why := range strings.Lines(err.Error()) {
		if strings.Contains(why, j.Tag) {
			r.why = strings.TrimSpace(why)
		}
	}
	e.stuck[j.Tag] = r
	if r.why == before {
		return nil
	}
	return e.line.noteJob(ctx, j, "stuck", r.why)
}

// cancelEach ends jobs with one command each.
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
