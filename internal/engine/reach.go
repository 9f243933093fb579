package engine

import (
	"context"
	"sync"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// A Reach is how corrald gets to sites. It holds one connection for each ssh site, over which all that is done there
// goes, for as long as corrald runs.
type Reach struct {
	options gridsite.SSHOptions

	mu    sync.Mutex // guards sites
	sites map[reached]*gridsite.SSH
}

// reached names a connection: a site's name may be used again, for another place.
type reached struct {
	site    corral.SiteID
	contact string
}

// NewReach returns a Reach that logs in with these files and this agent.
func NewReach(options gridsite.SSHOptions) *Reach {
	return &Reach{options: options, sites: map[reached]*gridsite.SSH{}}
}

// Open reaches a site and its batch systems. To close what it returns closes nothing that others use.
func (r *Reach) Open(ctx context.Context, site corral.Site) (gridsite.Access, error) {
	conn, err := r.conn(ctx, site)
	if err != nil {
		return gridsite.Access{}, err
	}
	return gridsite.NewAccess(conn, site)
}

func (r *Reach) conn(ctx context.Context, site corral.Site) (gridsite.Conn, error) {
	contact, err := gridsite.ParseContact(site.Contact)
	if err != nil {
		return nil, err
	}
	if contact.Transport != "ssh" {
		return gridsite.Dial(ctx, site.Contact)
	}
	s, err := r.ssh(site)
	return shared{s}, err
}

// ssh returns the site's connection, which logs in once it is used.
func (r *Reach) ssh(site corral.Site) (*gridsite.SSH, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := reached{site.ID, site.Contact}
	if s := r.sites[key]; s != nil {
		return s, nil
	}
	s, err := gridsite.NewSSH(site.Contact, r.options)
	if err != nil {
		return nil, err
	}
	r.sites[key] = s
	return s, nil
}

// Leave closes the connection to a site that nothing is asked of any more.
func (r *Reach) Leave(site corral.Site) {
	r.mu.Lock()
	key := reached{site.ID, site.Contact}
	s := r.sites[key]
	delete(r.sites, key)
	r.mu.Unlock()
	if s != nil {
		_ = s.Close() // nothing was left to be written
	}
}

// Close closes all connections.
func (r *Reach) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, s := range r.sites {
		_ = s.Close() // nothing was left to be written
		delete(r.sites, key)
	}
}

// shared is a connection that others use too.
type shared struct{ *gridsite.SSH }

func (shared) Close() error { return nil }
