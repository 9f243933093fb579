package engine

// What stays at a site of jobs that are over. A site counts files, and a glidein that is resubmitted forever has
// attempts without end, so their directories are removed but for some that people may still ask about.
//
// What is to be removed is found by looking at the site, not by remembering what ended: whatever was missed (because
// hundreds of attempts ended at once, corrald died, or the site did not answer) is still there at the next look.

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
	// keptAttempts is of how many attempts, those that ended last, the site keeps the directories, for people who ask
	// what went wrong.
	keptAttempts = 50

	// lookEvery is the least time between two looks at what a site keeps: each is a command there.
	lookEvery = time.Minute
)

// Remains are what is at the site of jobs that are over: directories of old attempts, and probes that another corrald
// left. What cannot be removed now is tried again after another attempt has ended.
type remains struct {
	line   *line
	prober *siteaccess.Prober

	ended       bool      // an attempt has since the last look, or may have before this loop began
	looked      time.Time // when what the site keeps was looked at last
	old         []string  // tags whose directories are to be removed
	probesEnded bool      // those of an earlier corrald
}

// forget has the site remove what it keeps of attempts that ended long ago, some in each step until nothing is left of
// them.
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

// look finds out which attempts the site keeps something of that may go. Without more attempts than are kept it is not
// asked.
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

// oldest returns those of the tags that are of attempts of the site which have ended, but for the keptAttempts that
// ended last. A tag that the store does not know is nobody's to remove: it may be of a pilot that works.
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
	slices.SortFunc(over, func(a, b corral.Job) int { // of those that were seen to end together, the later ones stay
		return cmp.Or(b.EndedAt.Compare(a.EndedAt), cmp.Compare(b.ID, a.ID))
	})
	return tagsOf(over[min(keptAttempts, len(over)):]), nil
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
		if err := r.prober.End(ctx, site, r.line.access.Pilots, tag); err != nil {
			return err
		}
	}
	r.probesEnded = true
	return nil
}
