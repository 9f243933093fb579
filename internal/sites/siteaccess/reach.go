package siteaccess

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// A Reach connects corrald to sites. Its methods may be called concurrently. It makes no decisions about sites: the
// loop that serves a site decides whether and when to try an unreachable one again.
type Reach struct {
	backends gridsite.Backends
	owner    string // mark on the roots of our sites

	// Credentials returns the credentials of the connections.
	Credentials Credentials
	held        *connections

	mu       sync.Mutex    // guards the fields below
	loggedIn chan struct{} // closed and replaced after each login
}

// New returns a Reach that uses these backends and marks sites' roots with owner: a value unique to this corrald, a
// space, and a description for people.
func New(backends gridsite.Backends, owner string) *Reach {
	held := &connections{sites: map[reached]connection{}, persons: map[connection]bool{}}
	return &Reach{
		backends: backends, owner: owner, loggedIn: make(chan struct{}), held: held, Credentials: Credentials{held},
	}
}

// Open connects to a site. Closing the result does not affect other users.
func (r *Reach) Open(_ context.Context, site corral.Site) (gridsite.Access, error) {
	access, _, err := r.open(site)
	return access, wrap.Errorf(err, "reaching site %s", site.Name)
}

// open connects to a site and returns the shared connection, or nil if its transport has none.
func (r *Reach) open(site corral.Site) (gridsite.Access, connection, error) {
	conn, held, err := r.conn(site)
	if err != nil {
		return gridsite.Access{}, nil, err
	}
	access, err := r.backends.Access(conn, site)
	return access, held, err
}

// conn returns a Conn to the site: the shared one, which logs in when it is first used, or a new one if the transport
// has no connections. Dialling may run commands and read files, so it is done without the lock: if two callers dial
// at the same time, one connection is kept.
func (r *Reach) conn(site corral.Site) (gridsite.Conn, connection, error) {
	if held := r.held.of(site); held != nil {
		return shared{held}, held, nil
	}
	conn, err := r.backends.Dial(site.Owner, site.Contact)
	if err != nil {
		return nil, nil, err
	}
	fresh, holds := conn.(connection)
	if !holds {
		return conn, nil, nil
	}
	kept := r.held.keep(site, fresh)
	if kept != fresh {
		_ = fresh.Close() // nothing was sent on it
	}
	return shared{kept}, kept, nil
}

// Another returns the head of a site on a second connection, which the caller must close.
func (r *Reach) Another(site corral.Site) (gridsite.Head, error) {
	conn, err := r.backends.Dial(site.Owner, site.Contact)
	if err != nil {
		return nil, err
	}
	return r.backends.Head(conn, site.Root), nil
}

// enter connects to a site on behalf of a waiting person: it tries now, regardless of earlier failures.
func (r *Reach) enter(ctx context.Context, site corral.Site, acceptHostKey bool) (gridsite.Access, error) {
	access, held, err := r.open(site)
	if held == nil || err != nil {
		return access, err
	}
	if err = held.Connect(ctx, acceptHostKey); err != nil {
		r.held.giveUp(site, held)
		return access, corral.ErrorAt(corral.Unavailable, "contact", "%w", err)
	}
	return access, nil
}

// Login logs in at a site with a person's answers and holds the connection; if the site is still to be created, the
// connection waits for it. The person may also accept the key of an unknown host. Whether or not Login succeeds, the
// callers that wait for LoggedIn are woken, because a failed login also matters to a site in trouble.
func (r *Reach) Login(ctx context.Context, site corral.Site, ask gridsite.Asker, acceptHostKey bool) error {
	defer r.ring()
	_, held, err := r.conn(site)
	if err != nil {
		return err
	}
	if held == nil {
		return corral.ErrorAt(corral.Invalid, "contact", "%s is this machine, which needs no login", site.Contact)
	}
	if acceptHostKey {
		err = held.Connect(ctx, true)
	}
	var login *gridsite.LoginError
	if !acceptHostKey || errors.As(err, &login) { // the host key is known by now, and the host asks for a login
		if err = held.Login(ctx, ask); err == nil {
			r.held.logged(site)
		}
	}
	if err != nil {
		r.held.giveUp(site, held)
	}
	return err
}

// Refuse closes the connection that was made to check a site that is not created after all: the next try may follow a
// change of groups, keys or configuration that only a new connection notices. A connection for which a person has
// logged in stays open for some minutes, because another login may require another password.
func (r *Reach) Refuse(site corral.Site) {
	if held := r.held.of(site); held != nil && !r.held.byPerson(site) {
		r.held.giveUp(site, held)
	}
}

// LoggedIn returns a channel that is closed after a person's next login at any site.
func (r *Reach) LoggedIn() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.loggedIn
}

func (r *Reach) ring() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.loggedIn)
	r.loggedIn = make(chan struct{})
}

// Stands reports whether requests to a site need no further login.
func (r *Reach) Stands(site corral.Site) bool {
	_, held, err := r.conn(site)
	return err != nil || held == nil || held.Stands()
}

// Lost returns a channel that is closed when the open connection to a site ends, or nil if there is none.
func (r *Reach) Lost(id corral.SiteID) <-chan struct{} { return r.held.lost(id) }

// LocalIP returns this machine's address on the route to a site's nodes, as far as that can be determined without
// asking one of them.
func (r *Reach) LocalIP(site corral.Site) netip.Addr {
	if _, held, err := r.conn(site); held != nil && err == nil {
		return held.LocalIP()
	}
	if site.System().Queueless { // the node is this machine
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return gridsite.LocalIP()
}

// Leave closes the connection to a site that is no longer used.
func (r *Reach) Leave(id corral.SiteID) {
	r.held.close(func(key reached, _ connection) bool { return key.site == id })
}

// Close closes all connections.
func (r *Reach) Close() {
	r.held.close(func(reached, connection) bool { return true })
}

// JobFile returns the content of a file in a job's directory at its site, or fs.ErrNotExist if there is no such file.
func (r *Reach) JobFile(ctx context.Context, site corral.Site, job corral.Job, name string) ([]byte, error) {
	access, err := r.Open(ctx, site)
	if err != nil {
		return nil, err
	}
	defer access.Head.Close()
	if site.State == corral.SiteDeleted { // nothing else closes it
		defer r.Leave(site.ID)
	}
	return access.Batch(job.Kind).Read(ctx, job.Tag, name)
}

// Trouble describes the obstacle that prevents corrald from reaching a site from now on. The description stays the same
// as long as the cause does, so that the caller can tell whether the trouble is new.
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
	case errors.As(err, &paused): // the wrapping text contains a time
		t.Why = paused.Error()
	}
	return t
}

// keptForSite is how long a connection made before its site exists is kept.
const keptForSite = 10 * time.Minute

// A connection is a Conn that is kept for its site.
type connection interface {
	gridsite.Conn
	gridsite.Remote
	gridsite.Streamer
}

// shared is a connection that others also use.
type shared struct{ connection }

func (shared) Close() error { return nil }

// reached identifies a connection, because a site's name may be reused for another place. A site that is still to be
// created has id 0; once created, it takes over the connection made before. Another owner who creates a site at the
// same place does not get that connection: it was opened with its owner's secrets.
type reached struct {
	site           corral.SiteID
	owner, contact string
}

func keyOf(site corral.Site) reached { return reached{site.ID, site.Owner, site.Contact} }

// before returns the key of a connection to a site without an id.
func (r reached) before() reached { return reached{0, r.owner, r.contact} }

// connections holds a Reach's connections, one for each site.
type connections struct {
	mu      sync.Mutex // guards the fields below; no connection is dialled or closed while it is held
	sites   map[reached]connection
	persons map[connection]bool // :: connection → a person logged in for it
}

// logged records that a person has logged in for the connection to a site.
func (h *connections) logged(site corral.Site) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.sites[keyOf(site)]; c != nil {
		h.persons[c] = true
	}
}

// byPerson reports whether a person has logged in for the connection to a site.
func (h *connections) byPerson(site corral.Site) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.persons[h.sites[keyOf(site)]]
}

// of returns the connection held for a site, or nil if there is none. A connection that waited for the site's
// creation is assigned to the site.
func (h *connections) of(site corral.Site) connection {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := keyOf(site)
	before := key.before()
	if c := h.sites[key]; c != nil {
		return c
	}
	c := h.sites[before]
	if c != nil {
		delete(h.sites, before)
		h.sites[key] = c
	}
	return c
}

// keep stores a new connection for a site, unless another one has been stored in the meantime, and returns the stored
// one.
func (h *connections) keep(site corral.Site, fresh connection) connection {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := keyOf(site)
	if c := h.sites[key]; c != nil {
		return c
	}
	h.sites[key] = fresh
	if site.ID == 0 {
		time.AfterFunc(keptForSite, func() { h.giveUp(site, fresh) })
	}
	return fresh
}

// giveUp closes a connection that is waiting for its site to be created, unless the site has taken it over in the
// meantime.
func (h *connections) giveUp(site corral.Site, c connection) {
	if site.ID == 0 {
		h.close(func(key reached, other connection) bool { return key == keyOf(site) && other == c })
	}
}

// lost returns a channel that is closed when the open connection to a site ends, or nil if there is none.
func (h *connections) lost(id corral.SiteID) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, c := range h.sites {
		if lost := c.Lost(); key.site == id && lost != nil {
			return lost
		}
	}
	return nil
}

// close removes the chosen connections and then closes them.
func (h *connections) close(chosen func(reached, connection) bool) {
	var gone []connection
	h.mu.Lock()
	for key, c := range h.sites {
		if chosen(key, c) {
			delete(h.sites, key)
			delete(h.persons, c)
			gone = append(gone, c)
		}
	}
	h.mu.Unlock()
	for _, c := range gone {
		_ = c.Close() // there was nothing left to write
	}
}
