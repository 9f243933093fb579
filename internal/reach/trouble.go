package reach

import (
	"errors"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// Trouble says, in words that stay the same for as long as the trouble does, what keeps us from a site since now. So
// whoever records it can tell whether there is anything new.
func Trouble(err error, now time.Time) corral.SiteTrouble {
	t := corral.SiteTrouble{Why: err.Error(), Since: now.UTC()}
	var key *gridsite.HostKeyError
	var login *gridsite.LoginError
	var paused *gridsite.Paused
	switch {
	case errors.As(err, &key):
		t.LoginNeeded, t.Why = true, key.Error()
	case errors.As(err, &login):
		t.LoginNeeded, t.Why = true, login.Error()
	case errors.As(err, &paused): // the words around it have a time in them
		t.Why = paused.Error()
	}
	return t
}
