package store

import (
	"cmp"

	"github.com/corral-pilot/corral"
)

// A site's row holds the user's settings, the results of the survey, and the current obstacles to using the site. Its
// name is free for another site as soon as it is DELETED; references to a site use its id.
var sites = table[corral.Site]{
	noun:  corral.ObjectSite,
	name:  "sites",
	owner: "owner",
	columns: func(s *corral.Site) []column {
		return []column{
			{"id", orNull(&s.ID)},
			{"name", &s.Name},
			{"owner", &s.Owner},
			{"contact", &s.Contact},
			{"batch", &s.Batch},
			{"root", &s.Root},
			{"os", &s.Platform.OS},
			{"arch", &s.Platform.Arch},
			{"libc", &s.Platform.Libc},
			{"package", &s.Package},
			{"package_digest", &s.PackageDigest},
			{"head_batch", &s.HeadBatch},
			{"queue", &s.Queue},
			{"account", &s.Account},
			{"qos", &s.QOS},
			{"features", &s.Constraint},
			{"site_options", asJSON(&s.SiteOptions)},
			{"max_queued", &s.Limits.MaxQueued},
			{"max_running", &s.Limits.MaxRunning},
			{"price", &s.Price},
			{"billing", &s.Billing},
			{"allocation", &s.Allocation},
			{"facts", asJSON(&s.Facts)},
			{"login_needed", &s.Trouble.LoginNeeded},
			{"trouble", &s.Trouble.Why},
			{"trouble_at_ms", at(&s.Trouble.Since)},
			{"relay_trouble", &s.RelayTrouble},
			{"state", &s.State},
			{"reason", &s.Reason},
			{"created_at_ms", at(&s.CreatedAt)},
			{"updated_at_ms", at(&s.UpdatedAt)},
		}
	},
	about: func(s corral.Site) []Subject {
		return []Subject{{corral.ObjectSite, int64(s.ID)}}
	},
}

// CreateSite stores s as NEW and sets its ID, State and times. It returns a Conflict error if its name is not free.
func (t *Tx) CreateSite(s corral.Site) (corral.Site, error) {
	if err := t.FreeSiteName(s.Owner, s.Name); err != nil {
		return corral.Site{}, err
	}
	s.HeadBatch = cmp.Or(s.HeadBatch, corral.ForkBatch)
	s.ID, s.State, s.Reason, s.CreatedAt, s.UpdatedAt = 0, corral.SiteNew, "", t.now, t.now
	return sites.create(t, s, string(s.State))
}

// FreeSiteName returns a Conflict error if a site of the owner that is not DELETED has the name.
func (t *Tx) FreeSiteName(owner, name string) error {
	return sites.free(t, func(other corral.Site) error {
		return corral.Errorf(corral.Conflict, "site %q exists already, with id %d", name, other.ID)
	}, "owner = ? and name = ? and state <> 'DELETED'", owner, name)
}

// Site returns the site with this id, DELETED or not.
func (t *Tx) Site(id corral.SiteID) (corral.Site, error) {
	return sites.one(t, id, "id = ?", id)
}

// SiteNamed returns the site that currently has the name, chosen as the function named describes. DELETED sites do
// not keep their names.
func (t *Tx) SiteNamed(name string) (corral.Site, error) {
	return named(t, sites, name, func(s corral.Site) string { return s.Owner })
}

// SiteLastNamed returns the site that currently has the name or, if there is none, the most recently created DELETED
// site that had it.
func (t *Tx) SiteLastNamed(name string) (corral.Site, error) {
	s, err := t.SiteNamed(name)
	if corral.KindOf(err) == corral.NotFound {
		return sites.one(t, name, "name = ? order by owner <> ?, id desc limit 1", name, t.asker)
	}
	return s, err
}

// Sites lists sites.
func (t *Tx) Sites(f Filter) ([]corral.Site, error) {
	return sites.filtered(t, f)
}

// SitesAt lists all owners' sites with a contact, because no site's root may contain another's at the same host. The
// result must not appear in the answer to a request.
func (t *Tx) SitesAt(contact string) (at []corral.Site, err error) {
	err = everywhere(t, func(all *Tx) error {
		c := where("contact = ?", contact)
		c.filter(Filter{})
		at, err = sites.list(all, c)
		return err
	})
	return at, err
}

// SitesToServe lists the sites that may still need work: those that are not DELETED, and DELETED ones that left jobs
// behind.
func (t *Tx) SitesToServe() ([]corral.Site, error) {
	return sites.list(t, where("(state <> 'DELETED' or id in (select site_id from jobs where "+liveJob+"))"))
}

// MoveSite applies move to a site. It also settles the site's live glideins, because their state depends on the
// site's.
func (t *Tx) MoveSite(id corral.SiteID, move corral.SiteMove, reason string) (corral.Site, error) {
	s, err := sites.move(t, id, func(s corral.Site) (corral.Site, []corral.Entry, error) {
		return s.Apply(move, reason, t.now)
	})
	if err != nil {
		return corral.Site{}, err
	}
	return s, t.settleSite(s)
}

// SetSite lets fn set facts about a site: how to reach it, its root, platform and package, options and limits, the
// results of a probe, and obstacles to its use. If fn changes the ID, Name, Owner, State, Reason or times, that is a
// defect, and nothing is stored.
func (t *Tx) SetSite(id corral.SiteID, fn func(*corral.Site)) (corral.Site, error) {
	return sites.setFacts(t, id, fn, siteWithoutFacts, func(s *corral.Site) { s.UpdatedAt = t.after(s.UpdatedAt) })
}

// siteWithoutFacts returns the fields of a site that SetSite must not change.
func siteWithoutFacts(s corral.Site) corral.Site {
	return corral.Site{
		ID: s.ID, Name: s.Name, Owner: s.Owner, State: s.State, Reason: s.Reason,
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
}
