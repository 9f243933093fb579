package engine

import (
	"context"
	"errors"
	"path"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// keptForSite is how long a connection that was made before its site is created waits for that.
const keptForSite = 10 * time.Minute

// A Reach is how corrald gets to sites. It holds one connection for each ssh site, over which all that is done there
// goes, for as long as corrald runs.
type Reach struct {
	backends gridsite.Backends
	owner    string // of the roots of our sites

	mu    sync.Mutex // guards sites
	sites map[reached]connection
}

// reached names a connection: a site's name may be used again, for another place. A site that is to be created has no
// id; once it has, the connection that was made before is its own.
type reached struct {
	site    corral.SiteID
	contact string
}

// A connection is a Conn that is held for its site.
type connection interface {
	gridsite.Conn
	gridsite.Remote
	gridsite.Streamer
}

// NewReach returns a Reach that speaks to sites with these backends.
func NewReach(backends gridsite.Backends) *Reach {
	return &Reach{backends: backends, sites: map[reached]connection{}}
}

// Open reaches a site. To close what it returns closes nothing that others use.
func (r *Reach) Open(_ context.Context, site corral.Site) (gridsite.Access, error) {
	c, err := r.remote(site)
	if err != nil {
		return gridsite.Access{}, err
	}
	var conn gridsite.Conn = shared{c}
	if c == nil {
		if conn, err = r.backends.Dial(site.Contact); err != nil {
			return gridsite.Access{}, err
		}
	}
	return r.backends.Access(conn, site)
}

// enter reaches a site that somebody is busy with: it is tried now, whatever became of the last attempt.
func (r *Reach) enter(ctx context.Context, site corral.Site, acceptHostKey bool) (gridsite.Access, error) {
	access, err := r.Open(ctx, site)
	if err != nil {
		return access, err
	}
	c, err := r.remote(site)
	if c == nil || err != nil {
		return access, err
	}
	if err = c.Connect(ctx, acceptHostKey); err != nil {
		r.giveUp(site, c)
		return access, corral.ErrorAt(corral.Unavailable, "contact", "%w", err)
	}
	return access, nil
}

// Login logs in at a site with the answers of a person, and holds the connection; with those of a site that is to be
// created it waits for it. The person may accept the key of an unknown host, too.
func (r *Reach) Login(ctx context.Context, site corral.Site, ask gridsite.Asker, acceptHostKey bool) error {
	s, err := r.remote(site)
	if err != nil {
		return err
	}
	if s == nil {
		return corral.ErrorAt(corral.Invalid, "contact", "%s is this machine, where nobody logs in", site.Contact)
	}
	if acceptHostKey {
		err = s.Connect(ctx, true)
	}
	var login *gridsite.LoginError
	if !acceptHostKey || errors.As(err, &login) { // the host is known by now, and asks
		err = s.Login(ctx, ask)
	}
	if err != nil {
		r.giveUp(site, s)
	}
	return err
}

// remote returns the site's connection, which logs in once it is used; nil if its transport holds none.
func (r *Reach) remote(site corral.Site) (connection, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, before := reached{site.ID, site.Contact}, reached{0, site.Contact}
	if s := r.sites[key]; s != nil {
		return s, nil
	}
	if s := r.sites[before]; s != nil {
		delete(r.sites, before)
		r.sites[key] = s
		return s, nil
	}
	conn, err := r.backends.Dial(site.Contact)
	s, held := conn.(connection)
	if !held || err != nil {
		return nil, err
	}
	r.sites[key] = s
	if key == before {
		time.AfterFunc(keptForSite, func() { r.giveUp(site, s) })
	}
	return s, nil
}

// another returns the head of a site on a second connection, which whoever asks for it closes.
func (r *Reach) another(site corral.Site) (gridsite.Head, error) {
	conn, err := r.backends.Dial(site.Contact)
	if err != nil {
		return nil, err
	}
	return r.backends.Head(conn, site.Root), nil
}

// giveUp closes a connection that waits for its site to be created, unless it is that site's by now.
func (r *Reach) giveUp(site corral.Site, s connection) {
	r.mu.Lock()
	key := reached{0, site.Contact}
	ours := site.ID == 0 && r.sites[key] == s
	if ours {
		delete(r.sites, key)
	}
	r.mu.Unlock()
	if ours {
		_ = s.Close() // nothing was left to be written
	}
}

// stands reports whether the way to a site is open already.
func (r *Reach) stands(site corral.Site) bool {
	s, err := r.remote(site)
	return err != nil || s == nil || s.Stands()
}

// lost is closed when the connection that stands to a site has ended; nil if there is none.
func (r *Reach) lost(id corral.SiteID) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, s := range r.sites {
		if lost := s.Lost(); key.site == id && lost != nil {
			return lost
		}
	}
	return nil
}

// Leave closes the connection to a site that nothing is asked of any more.
func (r *Reach) Leave(id corral.SiteID) {
	r.closeAll(func(key reached) bool { return key.site == id })
}

// Close closes all connections.
func (r *Reach) Close() {
	r.closeAll(func(reached) bool { return true })
}

func (r *Reach) closeAll(chosen func(reached) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, s := range r.sites {
		if chosen(key) {
			delete(r.sites, key)
			_ = s.Close() // nothing was left to be written
		}
	}
}

// shared is a connection that others use too.
type shared struct{ connection }

func (shared) Close() error { return nil }

// CheckSite reports why a site cannot be used: it is not reached, its root is not writable, or has files of others in
// it, or its batch system takes no job with its options. It leaves nothing there; a host key that is accepted is written into the user's known_hosts.
func (r *Reach) CheckSite(ctx context.Context, site corral.Site, acceptHostKey bool) error {
	if !path.IsAbs(site.Root) || strings.ContainsFunc(site.Root, unicode.IsControl) {
		return corral.ErrorAt(corral.Invalid, "root", "%.80q is no absolute path, or has a control character in it", site.Root)
	}
	access, err := r.enter(ctx, site, acceptHostKey)
	if err != nil {
		return err
	}
	defer access.Head.Close()
	why, err := r.checkRoot(ctx, access.Head, site)
	if err != nil {
		return corral.ErrorAt(corral.Unavailable, "contact", "reaching %s: %w", site.Contact, err)
	}
	if why != "" {
		return corral.ErrorAt(corral.Invalid, "root", "%s at %s cannot be the root of a site: %s", site.Root, site.Contact, why)
	}
	return checkOptions(ctx, site, access.Pilots)
}
