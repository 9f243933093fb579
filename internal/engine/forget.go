package engine

import (
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
)

// A site keeps the directories of the attempts that ended last, for people who ask what went wrong. A
// site counts files, and a glidein that is resubmitted for ever has attempts without end.
const (
	keptAttempts = 50
	forgetMost   = 20 // attempts looked at in one go; as many may end between two goes
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
	l.ended = false
	gone := map[string]bool{}
	for _, j := range old {
		gone[j.Tag] = true
		if l.forgotten[j.Tag] {
			continue
		}
		if err := l.open(ctx, site); err != nil {
			return err
		}
		if err := l.access.Pilots.Forget(ctx, j.Tag); err != nil {
			l.e.lg.Warn("an old job's directory stays at the site", "site", site.Name, "job", j.Tag, "err", err)
		}
	}
	l.forgotten = gone
	return nil
}
