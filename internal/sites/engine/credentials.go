package engine

import (
	"context"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/internal/store"
)

const (
	// waitRenewal is the maximum rest of a loop while an expired credential blocks work at its site. Checking the
	// file costs the site nothing.
	waitRenewal = 5 * time.Second

	// A host counts the logins that it refuses, so after a credential has expired, another one is tried as rarely as
	// after any refused login.
	otherLogin = 5 * time.Minute
)

// credentials tracks how long corrald can log in at the site. After a restart of corrald, people are notified once
// more.
type credentials struct {
	line  *line
	watch credential.Watch
	next  time.Time // when another login may be tried in place of the expired one
}

// look reads the credentials again and reports, in the log and in the site's history, when one is about to expire,
// has expired, or was renewed. If one has expired, the site may accept another, so another login is tried.
func (c *credentials) look(ctx context.Context, now time.Time, site corral.Site) ([]credential.Credential, error) {
	held := c.line.reach.Credentials
	all := held.Of(site)
	if credential.Refuses(now, all, 0) != "" && !now.Before(c.next) {
		c.next = now.Add(otherLogin)
		if err := held.Renew(ctx, site); err != nil {
			c.line.lg.Info("no other login in place of the expired one", "site", site.Name, "err", err)
		}
		all = held.Of(site)
	}
	for _, what := range c.watch.News(now, all) {
		c.line.lg.Warn("credential of a site", "site", site.Name, "what", what)
		err := c.line.write(ctx, func(tx *store.Tx) error {
			return tx.Log(corral.ObjectSite, int64(site.ID), "credential", what)
		})
		if err != nil {
			return nil, err
		}
	}
	c.watch.Tell(now, all)
	return all, nil
}

// rest returns how long the loop may rest before the next check: until something must be reported or, if work waits for
// a new credential, only briefly. The step may have logged in since the last check.
func (c *credentials) rest(now time.Time, site corral.Site) time.Duration {
	all := c.line.reach.Credentials.Of(site)
	switch {
	case !slices.Equal(all, c.watch.Known()):
		return pollSoon
	case credential.Refuses(now, all, 0) != "":
		return c.watch.Rest(now, waitRenewal)
	}
	return c.watch.Rest(now, pollNothing)
}
