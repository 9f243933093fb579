package siteaccess

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// A Reach is how corrald gets to sites. Its methods may be called from several goroutines at once. It decides nothing
// about sites: whether one that is not reached is tried again, and when, is for the loop that serves it.
type Reach struct {
	backends gridsite.Backends
	owner    string // of the roots of our sites

	// Credentials knows by what the connections were made.
	Credentials Credentials
	held        *connections

	mu       sync.Mutex    // guards following
	loggedIn chan struct{} // closed and replaced after each login
}

// New returns a Reach that speaks to sites with these backends, and marks their roots as those of owner: something that
// no other corrald has, a blank, and words for people.
func New(backends gridsite.Backends, owner string) *Reach {
	held := &connections{sites: map[reached]connection{}, persons: map[connection]bool{}}
	return &Reach{
		backends: backends, owner: owner, loggedIn: make(chan struct{}), held: held, Credentials: Credentials{held},
	}
}

// Open reaches a site. To close what it returns closes nothing that others use.
func (r *Reach) Open(_ context.Context, site corral.Site) (gridsite.Access, error) {
	access, _, err := r.open(site)
	if err != nil {
		return access, fmt.Errorf("reaching site %s: %w", site.Name, err)
	}
	return access, nil
}

// open reaches a site, and returns the connection that is held for it; nil if its transport holds none.
func (r *Reach) open(site corral.Site) (gridsite.Access, connection, error) {
	conn, held, err := r.conn(site)
	if err != nil {
		return gridsite.Access{}, nil, err
	}
	access, err := r.backends.Access(conn, site)
	return access, held, err
}

// conn returns a Conn to the site: the one that is held, which logs in once it is used, or a new one where the
// transport holds none. Dialling may run commands and read files, so it is done without the lock: of two that dial at
// the same time one is kept.
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

// Another returns the head of a site on a second connection, which whoever asks for it closes.
func (r *Reach) Another(site corral.Site) (gridsite.Head, error) {
	conn, err := r.backends.Dial(site.Owner, site.Contact)
	if err != nil {
		return nil, err
	}
	return r.backends.Head(conn, site.Root), nil
}

// enter reaches a site that somebody is busy with: it is tried now, whatever became of the last attempt.
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

// Login logs in at a site with the answers of a person, and holds the connection; with those of a site that is to be
// created it waits for it. The person may accept the key of an unknown host, too. Whether it succeeds or not, those who
// wait for LoggedIn are woken: a login that failed is news for a site in trouble as well.
func (r *Reach) Login(ctx context.Context, site corral.Site, ask gridsite.Asker, acceptHostKey bool) error {
	defer r.ring()
	_, held, err := r.conn(site)
	if err != nil {
		return err
	}
	if held == nil {
		return corral.ErrorAt(corral.Invalid, "contact", "%s is this machine, where nobody logs in", site.Contact)
	}
	if acceptHostKey {
		err = held.Connect(ctx, true)
	}
	var login *gridsite.LoginError
	if !acceptHostKey || errors.As(err, &login) { // the host is known by now, and asks
		if err = held.Login(ctx, ask); err == nil {
			r.held.logged(site)
		}
	}
	if err != nil {
		r.held.giveUp(site, held)
	}
	return err
}

// Refuse closes the connection that was made to look at a site which is not created after all: the next try may come
// after a change of groups, keys or configuration that only a new connection sees. One for which a person has logged in
// stays for some minutes, since to log in once more may cost another password.
func (r *Reach) Refuse(site corral.Site) {
	if held := r.held.of(site); held != nil && !r.held.byPerson(site) {
		r.held.giveUp(site, held)
	}
}

// LoggedIn returns a channel that is closed after the next login of a person, at any site.
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

// Stands reports whether the way to a site is open already: nothing that is asked there now waits for a login.
func (r *Reach) Stands(site corral.Site) bool {
	_, held, err := r.conn(site)
	return err != nil || held == nil || held.Stands()
}

// Lost is closed when the connection that stands to a site has ended; nil if there is none.
func (r *Reach) Lost(id corral.SiteID) <-chan struct{} { return r.held.lost(id) }

// LocalIP returns the address that this machine has on the way to the nodes of a site, as far as that can be told
// without asking one of them.
func (r *Reach) LocalIP(site corral.Site) netip.Addr {
	if _, held, err := r.conn(site); held != nil && err == nil {
		return held.LocalIP()
	}
	if site.System().Queueless { // its node is this machine
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return gridsite.LocalIP()
}

// Leave closes the connection to a site that nothing is asked of any more.
func (r *Reach) Leave(id corral.SiteID) {
	r.held.close(func(key reached, _ connection) bool { return key.site == id })
}

// Close closes all connections.
func (r *Reach) Close() {
	r.held.close(func(reached, connection) bool { return true })
}

// JobFile reads a file of a job's directory at its site; fs.ErrNotExist if there is none.
func (r *Reach) JobFile(ctx context.Context, site corral.Site, job corral.Job, name string) ([]byte, error) {
	access, err := r.Open(ctx, site)
	if err != nil {
		return nil, err
	}
	defer access.Head.Close()
	if site.State == corral.SiteDeleted { // nobody else closes it
		defer r.Leave(site.ID)
	}
	return access.Batch(job.Kind).Read(ctx, job.Tag, name)
}

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

// keptForSite is how long a connection that was made before its site is created waits for that.
const keptForSite = 10 * time.Minute

// A connection is a Conn that is held for its site.
type connection interface {
	gridsite.Conn
	gridsite.Remote
	gridsite.Streamer
}

// shared is a connection that others use too.
type shared struct{ connection }

func (shared) Close() error { return nil }

// reached names a connection: a site's name may be used again, for another place. A site that is to be created has no
// id; once it has, the connection that was made before is its own. Whoever else creates a site there does not get that
// connection: it was opened with what only its owner knows.
type reached struct {
	site           corral.SiteID
	owner, contact string
}

func keyOf(site corral.Site) reached { return reached{site.ID, site.Owner, site.Contact} }

// before is the key of a connection to a site that has no id yet.
func (r reached) before() reached { return reached{0, r.owner, r.contact} }

// Connections are those that a Reach holds, one for each site.
type connections struct {
	mu      sync.Mutex // guards following; nothing is dialled or closed while it is held
	sites   map[reached]connection
	persons map[connection]bool // :: connection → a person logged in for it
}

// logged notes that a person has logged in for the connection to a site.
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

// of returns the connection that is held for a site, nil if there is none. One that waited for the site to be created
// is the site's from now on.
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

// keep holds a new connection for a site, unless another one is held by now, and returns the one that is.
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

// giveUp closes a connection that waits for its site to be created, unless it is that site's by now.
func (h *connections) giveUp(site corral.Site, c connection) {
	if site.ID == 0 {
		h.close(func(key reached, other connection) bool { return key == keyOf(site) && other == c })
	}
}

// lost is closed when the connection that stands to a site has ended; nil if there is none.
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

// close forgets the chosen connections, and then closes them.
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
		_ = c.Close() // nothing was left to be written
	}
}
