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
	// cancelsAtOnce bounds how many jobs are ended at the same time where each needs a command of its own: a process or
	// a round trip at the site for as long as the job takes to leave.
	cancelsAtOnce = 8

	cancelGrace = 5 * time.Second // between asking a job to leave and forcing it
	cancelTime  = 5 * time.Minute // for all jobs of one command: a queue may be slow to let go of them
)

// A retry is when something is asked again that did not do what it was asked.
type retry struct {
	at    time.Time
	pause time.Duration
	why   string
}

// The ends of jobs that are to end. Those that do not are asked again later, and less and less often: they are no
// trouble of the site's, which must go on for the others.
type ends struct {
	line  *line
	stuck map[string]retry // :: tag of a job that does not end → when it is asked to again
}

// drop forgets what was remembered of a job while it was alive.
func (e *ends) drop(j corral.Job) { delete(e.stuck, j.Tag) }

// end ends jobs, but for those that it is too early to ask again. Pilots and the site's own jobs may be in different
// batch systems; that one of them fails does not keep the other from being asked.
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

// cancel ends jobs of one batch system, with one command if it can do that.
func (e *ends) cancel(ctx context.Context, w turn, jobs []corral.Job) error {
	if len(jobs) == 0 || !e.line.take() {
		return nil
	}
	e.line.pace.busy(w.now)
	e.line.pace.lookAgain() // those that are gone must be seen, or the next step would cancel them again
	took := e.line.stopwatch()
	jobs = e.line.some(jobs)
	err := e.cancelAll(ctx, jobs)
	if err == nil || ctx.Err() != nil || w.Site.State == corral.SiteDeleted { // which is given up
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

// cancelAll ends these jobs, which are of one batch system, within cancelTime.
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

// leaveAlone has a job that does not end asked again later, longer each time, and not for most of the time where that
// takes long; its history says why it does not end, if err knows.
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
