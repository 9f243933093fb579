package reach

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

// A Reach is how corrald gets to sites. Its methods may be called from several goroutines at once.
type Reach struct {
	backends gridsite.Backends
	owner    string // of the roots of our sites

	held connections

	mu       sync.Mutex    // guards following
	loggedIn chan struct{} // closed and replaced after each login
}

// New returns a Reach that speaks to sites with these backends, and marks their roots as those of owner: something that
// no other corrald has, a blank, and words for people.
func New(backends gridsite.Backends, owner string) *Reach {
	return &Reach{
		backends: backends, owner: owner, loggedIn: make(chan struct{}),
		held: connections{sites: map[reached]connection{}},
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
	conn, err := r.backends.Dial(site.Contact)
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
	conn, err := r.backends.Dial(site.Contact)
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
		err = held.Login(ctx, ask)
	}
	if err != nil {
		r.held.giveUp(site, held)
	}
	return err
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
	if site.Batch == corral.ForkBatch { // its node is this machine
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
