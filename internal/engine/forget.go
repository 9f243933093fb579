package engine

import (
	"context"
	"errors"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/store"
)

// A site keeps the directories of the attempts that ended last, for people who ask what went wrong. A
// site counts files, and a glidein that is resubmitted for ever has attempts without end.
const (
	keptAttempts = 50
	forgetMost   = manyAtOnce // attempts looked at in one go; as many may end between two goes
)

// forget has the site remove what it keeps of attempts that ended long ago. What it does not remove
// stays until the site itself is removed.
func (l *siteLoop) forget(ctx context.Context, site corral.Site) error {
	if !l.ended || site.State != corral.SiteReady {
		return nil
	}
	var old []corral.Job
	err := l.e.db.View(ctx, func(tx *store.Tx) (err error) {
		old, err = tx.AttemptsOver(l.id, keptAttempts, forgetMost)
		return err
	})
	if err != nil {
		return err
	}
	var tags []string
	for _, j := range old {
		if !l.forgotten[j.Tag] {
			tags = append(tags, j.Tag)
		}
	}
	if len(tags) > 0 {
		if err := l.open(ctx, site); err != nil {
			return err
		}
		if !l.take() {
			return nil
		}
		if err := forgetAll(ctx, l.access.Pilots, tags); err != nil {
			l.e.lg.Warn("directories of old jobs stay at the site", "site", site.Name, "err", err)
		}
	}
	l.ended, l.forgotten = false, map[string]bool{}
	for _, j := range old {
		l.forgotten[j.Tag] = true
	}
	return nil
}

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
