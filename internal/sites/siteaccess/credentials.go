package siteaccess

import (
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/gridsite"
)

// Credentials are those by which corrald is logged in at sites.
type Credentials struct{ held *connections }

// Of returns those of the connection to a site, or of the last one, as they are now: one that was renewed is the new
// one. Nothing is sent to the site for it.
func (c Credentials) Of(site corral.Site) []credential.Credential {
	if bearer, ok := c.held.of(site).(gridsite.Bearer); ok {
		return bearer.Credentials()
	}
	return nil
}

// Renew logs in at a site once more if the credential of the connection has expired: the site may take another one. If
// it does not, the connection stays as it is.
func (c Credentials) Renew(ctx context.Context, site corral.Site) error {
	held := c.held.of(site)
	if held == nil {
		return nil
	}
	return held.Connect(ctx, false)
}
