package reach

import (
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
)

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
// id; once it has, the connection that was made before is its own.
type reached struct {
	site    corral.SiteID
	contact string
}

// Connections are those that a Reach holds, one for each site.
type connections struct {
	mu    sync.Mutex // guards following; nothing is dialled or closed while it is held
	sites map[reached]connection
}

// of returns the connection that is held for a site, nil if there is none. One that waited for the site to be created
// is the site's from now on.
func (h *connections) of(site corral.Site) connection {
	h.mu.Lock()
	defer h.mu.Unlock()
	key, before := reached{site.ID, site.Contact}, reached{0, site.Contact}
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
	key := reached{site.ID, site.Contact}
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
		h.close(func(key reached, other connection) bool { return key == reached{0, site.Contact} && other == c })
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
			gone = append(gone, c)
		}
	}
	h.mu.Unlock()
	for _, c := range gone {
		_ = c.Close() // nothing was left to be written
	}
}
