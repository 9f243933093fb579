package siteaccess

import (
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/credential"
	"github.com/corral-pilot/corral/gridsite"
)

// Credentials gives access to the credentials of corrald's logins at sites.
type Credentials struct{ held *connections }

// Of returns the current credentials of the present or last connection to a site; if a credential was renewed, it
// returns the new one. It sends nothing to the site.
func (c Credentials) Of(site corral.Site) []credential.Credential {
	if bearer, ok := c.held.of(site).(gridsite.Bearer); ok {
		return bearer.Credentials()
	}
	return nil
}

// Renew logs in at a site once more if the connection's credential has expired, because the site may accept another.
// If it does not, the connection is unchanged.
func (c Credentials) Renew(ctx context.Context, site corral.Site) error {
	held := c.held.of(site)
	if held == nil {
		return nil
	}
	return held.Connect(ctx, false)
}
