package engine

// This file removes files at a site that belong to ended jobs. Sites limit the number of files, and a glidein that is
// resubmitted forever has an unlimited number of attempts, so the attempts' directories are removed, except those of
// recent attempts, which people may still ask about.
//
// The directories to remove are found by listing the site, not by remembering ended jobs: any that were missed
// (because hundreds of attempts ended at once, corrald died, or the site did not answer) are found at the next
// listing.

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	// keptAttempts is the number of attempts, the last to end, whose directories are kept at the site for people who
	// investigate failures.
	keptAttempts = 50

	// lookEvery is the minimum interval between two listings of a site's directories: each is a command there.
	lookEvery = time.Minute
)

// remains tracks the remains of ended jobs at the site: directories of old attempts, and probes that an earlier corrald
// left. Removals that fail are tried again after another attempt has ended.
type remains struct {
	line   *line
	prober *siteaccess.Prober

	ended       bool      // an attempt ended since the last listing, or may have ended before this loop began
	looked      time.Time // time of the last listing
	old         []string  // tags of the directories to remove
	probesEnded bool      // whether the probes of an earlier corrald have been ended
}

// forget removes the directories of attempts that ended long ago, some in each step until none are left.
func (r *remains) forget(ctx context.Context, now time.Time, site corral.Site) error {
	if site.State != corral.SiteReady {
		return nil
	}
	if len(r.old) == 0 && r.ended && !now.Before(r.looked.Add(lookEvery)) {
		if err := r.look(ctx, now, site); err != nil {
			return err
		}
	}
	if len(r.old) == 0 {
		return nil
	}
	if err := r.line.open(ctx, site); err != nil {
		return err
	}
	if !r.line.take() {
		return nil
	}
	tags := r.old[:min(len(r.old), manyAtOnce)]
	r.old = r.old[len(tags):]
	r.line.more = r.line.more || len(r.old) > 0
	if err := forgetAll(ctx, r.line.access.Pilots, tags); err != nil {
		r.line.lg.Warn("directories of old jobs stay at the site", "site", site.Name, "err", err)
	}
	return nil
}

// look determines which attempts' directories may be removed. If there are no more attempts than are kept, it does
// not query the site.
func (r *remains) look(ctx context.Context, now time.Time, site corral.Site) error {
	beyond, err := store.Read(ctx, r.line.db, func(tx *store.Tx) ([]corral.Job, error) {
		return tx.AttemptsOver(r.line.id, keptAttempts, 1)
	})
	if err != nil {
		return err
	}
	if len(beyond) == 0 {
		r.ended = false
		return nil
	}
	if err := r.line.open(ctx, site); err != nil {
		return err
	}
	lister, ok := r.line.access.Pilots.(gridsite.Lister)
	if !ok {
		r.ended = false
		return nil
	}
	if !r.line.take() {
		return nil
	}
	asked, done := r.line.asking(ctx, "listing its jobs")
	tags, err := lister.Tags(asked)
	done()
	if err != nil {
		return err
	}
	r.old, err = store.Read(ctx, r.line.db, func(tx *store.Tx) ([]string, error) { return oldest(tx, r.line.id, tags) })
	if err != nil {
		return err
	}
	r.ended, r.looked = false, now
	return nil
}

// oldest returns the tags that belong to ended attempts of the site, except the keptAttempts that ended last. A tag
// without a record in the store must not be removed: it may belong to a working pilot.
func oldest(tx *store.Tx, site corral.SiteID, tags []string) ([]string, error) {
	var over []corral.Job
	for _, tag := range tags {
		j, err := tx.JobTagged(tag)
		switch {
		case corral.KindOf(err) == corral.NotFound:
		case err != nil:
			return nil, err
		case j.Site == site && j.Kind == corral.PilotJob && !j.Live():
			over = append(over, j)
		}
	}
	slices.SortFunc(over, func(a, b corral.Job) int { // if several ended at the same time, the later ones stay
		return cmp.Or(b.EndedAt.Compare(a.EndedAt), cmp.Compare(b.ID, a.ID))
	})
	return tagsOf(over[min(keptAttempts, len(over)):]), nil
}

// forgetAll makes a batch system forget jobs, with one command if that is supported.
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

// endProbes ends the probes that an earlier corrald left; when the site itself is being left, it ends all probes.
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
		if err := r.prober.End(ctx, site, r.line.access.Pilots, tag); err != nil {
			return err
		}
	}
	r.probesEnded = true
	return nil
}
