package gridsite

import (
	"maps"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
)

// Backends are the constructors of transports and dialects, by their names in contacts and corral.BatchSystems. They
// are supplied by the program that connects to sites, so that programs that only use the names do not link the
// implementations.
type Backends struct {
	Transports map[string]Dialer

	// Dialects construct a batch system from the connection to a site and a directory there for Corral alone. The batch
	// system keeps its state and the directories of its jobs below that directory.
	Dialects map[string]func(conn Conn, root string) Batch

	// Head constructs the stager of a site with a Conn. Closing the Head closes the Conn.
	Head func(conn Conn, root string) Head
}

// A Dialer creates a transport to a contact with the keys and known hosts of an owner. Owners never share transports.
type Dialer func(owner, contact string) (Conn, error)

// Dial returns the transport named by a contact, for an owner. It sends nothing before the first use.
func (b Backends) Dial(owner, contact string) (Conn, error) {
	c, err := ParseContact(contact)
	if err != nil {
		return nil, err
	}
	dial, ok := b.Transports[c.Transport]
	if !ok {
		return nil, corral.ErrorAt(corral.Invalid, "contact", "this program has no transport %s", c.Transport)
	}
	return dial(owner, contact)
}

// An Access is a connected site. The caller closes its Head after the last use of all three parts.
type Access struct {
	Head   Head
	Pilots Batch // runs pilots
	Setup  Batch // runs setup and cleanup jobs; equal to Pilots if one batch system does both
}

// Access combines conn with the dialects named by the site.
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

// batch returns the batch system with the given dialect; place is the field of the site that names the dialect.
func (b Backends) batch(place, name string, conn Conn, root string) (Batch, error) {
	dialect, ok := b.Dialects[name]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(b.Dialects)), ", ")
		return nil, corral.ErrorAt(corral.Invalid, place, "%.80q is not supported; want one of %s", name, known)
	}
	return dialect(conn, root), nil
}

// Batch returns the batch system for jobs of the given kind.
func (a Access) Batch(kind corral.JobKind) Batch {
	if kind == corral.PilotJob {
		return a.Pilots
	}
	return a.Setup
}
