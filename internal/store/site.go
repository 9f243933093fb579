package store

import (
	"github.com/corral-pilot/corral"
)

// A site's row has what a person said of it, what a survey found there, and what keeps corrald from it at the moment.
// Its name is free for another site as soon as it is DELETED; everything that refers to a site has its id.
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

// CreateSite stores s as NEW; its ID, State and times are set here. A Conflict error if its name is not free.
func (t *Tx) CreateSite(s corral.Site) (corral.Site, error) {
	if err := t.FreeSiteName(s.Owner, s.Name); err != nil {
		return corral.Site{}, err
	}
	if s.HeadBatch == "" {
		s.HeadBatch = corral.ForkBatch
	}
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

// SiteNamed returns the site that has the name now, as named says; DELETED ones have none.
func (t *Tx) SiteNamed(name string) (corral.Site, error) {
	return named(t, sites, name, func(s corral.Site) string { return s.Owner })
}

// SiteLastNamed returns the site that has the name now, or, if none has it, the DELETED one that was created last of
// those that had it.
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

// SitesAt lists the sites of all owners with a contact: roots at one host must not hold one another. It is not for the
// answer to a request.
func (t *Tx) SitesAt(contact string) (at []corral.Site, err error) {
	err = everywhere(t, func(all *Tx) error {
		var c conditions
		c.add("contact = ?", contact)
		c.filter(Filter{})
		at, err = sites.list(all, c)
		return err
	})
	return at, err
}

// SitesToServe lists the sites that may still need something: those that are not DELETED, and DELETED ones that left
// jobs behind.
func (t *Tx) SitesToServe() ([]corral.Site, error) {
	var c conditions
	c.add("(state <> 'DELETED' or id in (select site_id from jobs where " + liveJob + "))")
	return sites.list(t, c)
}

// MoveSite applies move to a site. Its glideins that are not over are settled along with it, because
// their state depends on the site's.
func (t *Tx) MoveSite(id corral.SiteID, move corral.SiteMove, reason string) (corral.Site, error) {
	s, _, err := sites.change(t, id, func(s corral.Site) (corral.Site, []corral.Entry, error) {
		return s.Apply(move, reason, t.now)
	})
	if err != nil {
		return corral.Site{}, err
	}
	return s, t.settleSite(s)
}

// SetSite lets fn set facts about a site: how to reach it, its root, platform and package, options and limits,
// what a probe found, and what keeps corrald from it. It is a defect if fn changes the ID, Name, Owner, State,
// Reason or times: then nothing is stored.
func (t *Tx) SetSite(id corral.SiteID, fn func(*corral.Site)) (corral.Site, error) {
	return sites.setFacts(t, id, fn, siteWithoutFacts, func(s *corral.Site) { s.UpdatedAt = t.after(s.UpdatedAt) })
}

// siteWithoutFacts returns what SetSite must leave alone.
func siteWithoutFacts(s corral.Site) corral.Site {
	return corral.Site{
		ID: s.ID, Name: s.Name, Owner: s.Owner, State: s.State, Reason: s.Reason,
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
}
