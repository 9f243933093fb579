package server

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/decide/access"
	"github.com/corral-pilot/corral/internal/service/rest"
)

// VisitBounds limits visits. The zero value allows users no connections.
type VisitBounds struct {
	Allowed access.Contacts
	Rate    access.Rate // rate of visits by one owner's requests
}

// A visitKeeper tracks each owner's use of the rate. Owners are the holders of tokens from an administrator, so there
// are few.
type visitKeeper struct {
	bounds VisitBounds

	mu   sync.Mutex // guards the fields below
	used map[string]access.Bucket
}

// newVisits returns a keeper with these limits.
func newVisits(b VisitBounds) *visitKeeper {
	return &visitKeeper{bounds: b, used: map[string]access.Bucket{}}
}

// May counts a visit, or returns an error with the time of the next one.
func (k *visitKeeper) May(who access.Caller, now time.Time) error {
	if who.Name == access.LocalName {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	after, wait := k.used[who.Name].Take(now, k.bounds.Rate)
	if wait > 0 {
		return access.TooOften(wait, who.Name, "has corrald go to sites",
			fmt.Sprintf("%g times a minute (--visits)", k.bounds.Rate.PerSecond*60))
	}
	k.used[who.Name] = after
	return nil
}

// MayReach refuses a contact that the caller may not use.
func (k *visitKeeper) MayReach(who access.Caller, contact string) error {
	to, err := gridsite.ParseContact(contact)
	if err == nil {
		err = access.CheckContact(who, "contact", to.Transport, to.User)
	}
	if err != nil || to.Transport != "ssh" || who.Name == access.LocalName {
		return err
	}
	port, _ := strconv.Atoi(to.Port) // the port of a contact is a number or empty
	return k.bounds.Allowed.Check("contact", to.Host, port)
}

// visitEntry returns the error for a site that did not admit corrald, which refers to the request field that could
// solve the problem. A site that does not answer has its own status: corrald itself is healthy, and repeating the
// request at once, as clients do after a 503, would be useless. Only administrators learn why a host is unreachable:
// for others this would reveal details of the network of corrald's machine.
func visitEntry(who access.Caller, err error) error {
	var unreached *gridsite.Unreached
	var early *access.TooMany
	var key *gridsite.HostKeyError
	var login *gridsite.LoginError
	switch {
	case errors.As(err, &early):
		return err
	case errors.As(err, &unreached):
		why := error(unreached)
		if who.IsAdministrator() {
			why = unreached.Err
		}
		return rest.WithStatus(http.StatusBadGateway, corral.ErrorAt(corral.Unavailable, "contact", "%w", why))
	case errors.As(err, &key) && key.Problem == gridsite.HostKeyUnknown:
		return corral.ErrorAt(corral.Forbidden, "accept_host_key", "%w", key)
	case errors.As(err, &key):
		return corral.ErrorAt(corral.Forbidden, "contact", "%w", key)
	case errors.As(err, &login) && login.Answerable:
		return corral.ErrorAt(corral.Forbidden, "login", "%w", login)
	case errors.As(err, &login):
		return corral.ErrorAt(corral.Forbidden, "contact", "%w", login)
	case corral.KindOf(err) == corral.Unavailable:
		return rest.WithStatus(http.StatusBadGateway, err)
	}
	return err
}
