package engine

import (
	"context"
	"errors"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/reach"
	"github.com/corral-pilot/corral/internal/store"
)

// keptAttempts is of how many attempts, those that ended last, the site keeps the directories, for people who ask what
// went wrong. A site counts files, and a glidein that is resubmitted forever has attempts without end.
const keptAttempts = 50

// Remains are what is at the site of jobs that are over: directories of old attempts, and probes that another corrald
// left. What cannot be removed now stays until the site itself is removed.
type remains struct {
	line   *line
	prober *reach.Prober

	ended       bool            // an attempt has, or may have before this loop began
	forgotten   map[string]bool // :: tag of an old attempt → the site was told to forget it
	probesEnded bool            // those of an earlier corrald
}

// forget has the site remove what it keeps of attempts that ended long ago.
func (r *remains) forget(ctx context.Context, site corral.Site) error {
	if !r.ended || site.State != corral.SiteReady {
		return nil
	}
	var old []corral.Job
	err := r.line.db.View(ctx, func(tx *store.Tx) (err error) {
		old, err = tx.AttemptsOver(r.line.id, keptAttempts, manyAtOnce) // as many may end between two goes
		return err
	})
	if err != nil {
		return err
	}
	var tags []string
	for _, tag := range tagsOf(old) {
		if !r.forgotten[tag] {
			tags = append(tags, tag)
		}
	}
	if len(tags) > 0 {
		if err := r.line.open(ctx, site); err != nil {
			return err
		}
		if !r.line.take() {
			return nil
		}
		if err := forgetAll(ctx, r.line.access.Pilots, tags); err != nil {
			r.line.lg.Warn("directories of old jobs stay at the site", "site", site.Name, "err", err)
		}
	}
	r.ended, r.forgotten = false, map[string]bool{}
	for _, tag := range tagsOf(old) {
		r.forgotten[tag] = true
	}
	return nil
}

// forgetAll has a batch system forget jobs, with one command if it can do that.
func forgetAll(ctx context.Context, batch gridsite.Batch, tags []string) error {
	if many, ok := batch.(gridsite.Many); ok {
		return many.ForgetMany(ctx, tags)
	}
	var errs []error
	for _, tag := range tags {
		errs = append(errs, batch.Forget(ctx, tag))
	}
	return errors.Join(errs...)
}

// endProbes ends the probes that an earlier corrald left; and all, once the site is to be left.
func (r *remains) endProbes(ctx context.Context, site corral.Site) error {
	if r.probesEnded && site.State == corral.SiteReady {
		return nil
	}
	left, err := r.prober.Left(ctx, site)
	if err != nil {
		return err
	}
	for _, tag := range left {
		if err := r.line.open(ctx, site); err != nil {
			return err
		}
		if err := r.prober.End(ctx, r.line.access.Pilots, tag); err != nil {
			return err
		}
	}
	r.probesEnded = true
	return nil
}
