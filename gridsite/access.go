package gridsite

import "github.com/corral-pilot/corral"

// An Access is a site that is reached: the way there, and the batch systems that are used through it.
type Access struct {
	Conn   Conn
	Pilots Batch // queues pilots
	Head   Batch // runs setup and cleanup jobs; the same value as Pilots if one batch system does both
}

// NewAccess joins conn with the dialects that the site names. The caller closes conn after the last use of both.
func NewAccess(conn Conn, site corral.Site) (Access, error) {
	pilots, err := NewBatch(site.Batch, conn, site.Root)
	if err != nil {
		return Access{}, corral.ErrorAt(corral.KindOf(err), "batch", "%w", err)
	}
	a := Access{Conn: conn, Pilots: pilots, Head: pilots}
	if site.HeadBatch != "" && site.HeadBatch != site.Batch {
		if a.Head, err = NewBatch(site.HeadBatch, conn, site.Root); err != nil {
			return Access{}, corral.ErrorAt(corral.KindOf(err), "head_batch", "%w", err)
		}
	}
	return a, nil
}

// Batch returns the batch system for jobs of a kind.
func (a Access) Batch(kind corral.JobKind) Batch {
	if kind == corral.PilotJob {
		return a.Pilots
	}
	return a.Head
}
