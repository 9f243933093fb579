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
	// waitRenewal is how long a loop rests at most while a credential that has expired keeps something from its site. A
	// look at the file costs the site nothing.
	waitRenewal = 5 * time.Second

	// A host that refuses a login counts it, so another one instead of the credential that has expired is tried as
	// rarely as after any login that was refused.
	otherLogin = 5 * time.Minute
)

// credentials watches until when corrald may log in at the site. A corrald that starts again tells people once more.
type credentials struct {
	line  *line
	watch credential.Watch
	next  time.Time // when another login may be tried instead of the one that has expired
}

// look reads the credentials anew, and has people told, in the log and in the site's history, before one expires, when
// it has, and when it was renewed. Where one has expired the site may let us in by another, so that is tried.
func (c *credentials) look(ctx context.Context, now time.Time, site corral.Site) ([]credential.Credential, error) {
	held := c.line.reach.Credentials
	all := held.Of(site)
	if credential.Refuses(now, all, 0) != "" && !now.Before(c.next) {
		c.next = now.Add(otherLogin)
		if err := held.Renew(ctx, site); err != nil {
			c.line.lg.Info("no other login instead of the one that has expired", "site", site.Name, "err", err)
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

// rest is how long the loop may rest before it looks again: until people are to be told something, or, where something
// waits for a new credential, not for long. The step may have logged in since the last look.
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
