package scaling

import (
	"cmp"
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
	"github.com/corral-pilot/corral/internal/work/provision"
	"github.com/corral-pilot/corral/internal/work/request"
)

// mostPilots is the maximum number of requests to one site in one check.
const mostPilots = 1000

// site returns the workers that a site currently accepts.
func (k *scaler) site(tx *store.Tx, now time.Time, l *look, id corral.SiteID) (Supplier, error) {
	s, err := tx.Site(id)
	if err != nil {
		return Supplier{}, err
	}
	closed := Supplier{Name: s.Name, Closed: l.refused[s.Name]}
	if s.State == corral.SiteDeleted {
		closed.Closed = "is gone"
		return closed, nil
	}
	g, err := admit.Place(k.pilot(l, s, Worker(l.scale, s.Name)), now)
	if err != nil {
		closed.Closed = fmt.Sprintf("has no such workers: %v", err)
		return closed, nil
	}
	open := closed
	for _, h := range request.Hosts(g, s, k.machine) {
		most := k.most(s.ID)
		most.CPUs = h.CPUs // cpus of the host, not of the worker
		open.Hosts = append(open.Hosts, least(h, most))
	}
	if open.Left, err = left(tx, s, open.Hosts); err != nil {
		return open, err
	}
	waits, err := tx.Waits(store.WaitFilter{Site: s.ID, Last: latestWaits})
	if err != nil {
		return open, err
	}
	open.StartUp = provision.StartUp(s, waits)
	if f := k.failed[s.ID]; open.Closed == "" {
		switch {
		case s.State != corral.SiteReady:
			open.Closed = "is " + string(s.State)
		case now.Before(RetryAt(f.n, f.last)):
			open.Closed = fmt.Sprintf("is asked again at %s: %d pilots in a row failed there",
				RetryAt(f.n, f.last).UTC().Format(time.TimeOnly), f.n)
		}
	}
	pilots, full, err := pilotsAt(tx, s, l.scale)
	open.Pilots, open.Closed = pilots, cmp.Or(open.Closed, full)
	return open, err
}

// latestWaits is the number of a site's latest waits from which the time until a worker comes is learned.
const latestWaits = 50

// left returns what the glideins at a site leave of its one machine, or nil if the site has a batch system, or if its
// machine is not known.
func left(tx *store.Tx, s corral.Site, hosts []corral.Resources) (*corral.Resources, error) {
	if !s.System().Queueless || len(hosts) == 0 || hosts[0].CPUs >= corral.Unlimited {
		return nil, nil
	}
	held, err := tx.Held(s.ID)
	rest := hosts[0]
	for _, r := range held {
		rest = less(rest, r)
	}
	return &rest, err
}

// pilotsAt returns how many more workers a site accepts according to its limits and its allocation, or the reason if it
// accepts none.
func pilotsAt(tx *store.Tx, s corral.Site, of corral.Scale) (pilots int, why string, err error) {
	load, err := tx.Load(s.ID)
	if err != nil {
		return 0, "", err
	}
	for ; pilots < mostPilots; pilots++ {
		if full := s.Full(load); full != "" && pilots == 0 {
			return 0, "takes none: " + full, nil
		} else if full != "" {
			break
		}
		load.Queued++
	}
	if s.Allocation == "" && (s.Facts == nil || s.Facts.Allowance == nil) {
		return pilots, "", nil
	}
	paid, why, err := affordable(tx, s, of)
	return min(pilots, paid), why, err
}
