package gridsite

import (
	"maps"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
)

// Backends are the constructors of transports and dialects, by the names that contacts and corral.BatchSystems have for
// them. The program that speaks to sites wires them, so that others, which only name them, link none of them.
type Backends struct {
	Transports map[string]Dialer

	// Dialects make a batch system of the way to its site and a directory there that is ours alone: its state, and the
	// directories of its jobs, are below it.
	Dialects map[string]func(conn Conn, root string) Batch

	// Head makes what stages at sites with a Conn. Closing it closes the Conn.
	Head func(conn Conn, root string) Head
}

// A Dialer makes a transport to a contact, with the keys and the known hosts of an owner: each has their own, and they
// are lent to nobody.
type Dialer func(owner, contact string) (Conn, error)

// Dial returns the transport that a contact names, for an owner. Nothing is sent before its first use.
func (b Backends) Dial(owner, contact string) (Conn, error) {
	c, err := ParseContact(contact)
	if err != nil {
		return nil, err
	}
	dial, ok := b.Transports[c.Transport]
	if !ok {
		return nil, corral.ErrorAt(corral.Invalid, "contact", "no transport %s is in this program", c.Transport)
	}
	return dial(owner, contact)
}

// An Access is a site that is reached. Its Head is closed after the last use of all three.
type Access struct {
	Head   Head
	Pilots Batch // queues pilots
	Setup  Batch // runs setup and cleanup jobs; the same value as Pilots if one batch system does both
}

// Access joins conn with the dialects that the site names.
func (b Backends) Access(conn Conn, site corral.Site) (Access, error) {
	pilots, err := b.batch("batch", site.Batch, conn, site.Root)
	if err != nil {
		return Access{}, err
	}
	a := Access{Head: b.Head(conn, site.Root), Pilots: pilots, Setup: pilots}
	if site.HeadBatch != "" && site.HeadBatch != site.Batch {
		a.Setup, err = b.batch("head_batch", site.HeadBatch, conn, site.Root)
	}
	return a, err
}

func (b Backends) batch(place, name string, conn Conn, root string) (Batch, error) {
	dialect, ok := b.Dialects[name]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(b.Dialects)), ", ")
		return nil, corral.ErrorAt(corral.Invalid, place, "%.80q is not supported; want one of %s", name, known)
	}
	return dialect(conn, root), nil
}

// Batch returns the batch system for jobs of a kind.
func (a Access) Batch(kind corral.JobKind) Batch {
	if kind == corral.PilotJob {
		return a.Pilots
	}
	return a.Setup
}
