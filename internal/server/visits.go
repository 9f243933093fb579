package server

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/access"
	"github.com/corral-pilot/corral/internal/rest"
)

// Visits bound where corrald goes for requests, and how often. Its own user's, through the socket, have no bounds.
type Visits struct {
	Allowed access.Contacts
	Rate    access.Rate // of visits by requests of one owner
}

// visits keep how much of the rate each owner has used: owners are those whom an administrator has given a token.
type visits struct {
	Visits

	mu   sync.Mutex // guards following
	used map[string]access.Bucket
}

func newVisits(v Visits) *visits { return &visits{Visits: v, used: map[string]access.Bucket{}} }

// may counts a visit, or says when the next one may be.
func (v *visits) may(who access.Caller, now time.Time) error {
	if who.Name == access.LocalName {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	after, wait := v.used[who.Name].Take(now, v.Rate)
	if wait > 0 {
		return access.TooOften(wait, who.Name, "has corrald go to sites",
			fmt.Sprintf("%g times a minute (--visits)", v.Rate.PerSecond*60))
	}
	v.used[who.Name] = after
	return nil
}

// mayReach refuses a contact that is not for who asks.
func (v *visits) mayReach(c *rest.Call, contact string) error {
	to, err := gridsite.ParseContact(contact)
	if err == nil {
		err = access.CheckContact(c.Caller(), "contact", to.Transport, to.User)
	}
	if err != nil || to.Transport != "ssh" || c.Actor() == access.LocalName {
		return err
	}
	port, _ := strconv.Atoi(to.Port) // a contact has a number there, or nothing
	return v.Allowed.Check("contact", to.Host, port)
}
