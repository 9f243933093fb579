package store

import (
	"reflect"

	"github.com/corral-pilot/corral"
)

var sites = table[corral.Site]{
	noun: corral.ObjectSite,
	name: "sites",
	columns: `
	id,
	name,
	owner,
	contact,
	batch,
	root,
	os,
	arch,
	libc,
	package,
	package_digest,
	head_batch,
	queue,
	account,
	qos,
	features,
	site_options,
	max_queued,
	max_running,
	facts,
	login_needed,
	trouble,
	trouble_at_ms,
	relay_trouble,
	state,
	reason,
	created_at_ms,
	updated_at_ms`,
	fields: func(s *corral.Site) []any {
		return []any{
			orNull(&s.ID),
			&s.Name,
			&s.Owner,
			&s.Contact,
			&s.Batch,
			&s.Root,
			&s.Platform.OS,
			&s.Platform.Arch,
			&s.Platform.Libc,
			&s.Package,
			&s.PackageDigest,
			&s.HeadBatch,
			&s.Queue,
			&s.Account,
			&s.QOS,
			&s.Constraint,
			asJSON(&s.SiteOptions),
			&s.Limits.MaxQueued,
			&s.Limits.MaxRunning,
			asJSON(&s.Facts),
			&s.Trouble.LoginNeeded,
			&s.Trouble.Why,
			at(&s.Trouble.Since),
			&s.RelayTrouble,
			&s.State,
			&s.Reason,
			at(&s.CreatedAt),
			at(&s.UpdatedAt),
		}
	},
	about: func(s corral.Site) []Subject {
		return []Subject{{corral.ObjectSite, int64(s.ID)}}
	},
}

// CreateSite stores s as NEW; its ID, State and times are set here. A Conflict error if its name is not free.
func (t *Tx) CreateSite(s corral.Site) (corral.Site, error) {
	if err := t.FreeSiteName(s.Name); err != nil {
		return corral.Site{}, err
	}
	if s.HeadBatch == "" {
		s.HeadBatch = corral.ForkBatch
	}
	s.ID, s.State, s.Reason, s.CreatedAt, s.UpdatedAt = 0, corral.SiteNew, "", t.now, t.now
	return sites.create(t, s, string(s.State))
}

// FreeSiteName returns a Conflict error if a site that is not DELETED has the name.
func (t *Tx) FreeSiteName(name string) error {
	return sites.free(t, func(other corral.Site) error {
		return corral.Errorf(corral.Conflict, "site %q exists already, with id %d", name, other.ID)
	}, "name = ? and state <> 'DELETED'", name)
}

// Site returns the site with this id, DELETED or not.
func (t *Tx) Site(id corral.SiteID) (corral.Site, error) {
	return sites.one(t, id, "id = ?", id)
}

// SiteNamed returns the site that has the name now; DELETED ones have none.
func (t *Tx) SiteNamed(name string) (corral.Site, error) {
	return sites.one(t, name, "name = ? and state <> 'DELETED'", name)
}

// SiteLastNamed returns the site that has the name now, or, if none has it, the DELETED one that was created last of
// those that had it.
func (t *Tx) SiteLastNamed(name string) (corral.Site, error) {
	return sites.one(t, name, "name = ? order by state = 'DELETED', id desc limit 1", name)
}

// Sites lists sites.
func (t *Tx) Sites(f Filter) ([]corral.Site, error) {
	var c conditions
	c.filter(f)
	return sites.list(t, c)
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
	before, err := t.Site(id)
	if err != nil {
		return corral.Site{}, err
	}
	s := before
	fn(&s)
	if !reflect.DeepEqual(withoutFacts(s), withoutFacts(before)) {
		return corral.Site{}, corral.Errorf(corral.Internal, "setting facts of site %d changes what is no fact", id)
	}
	if reflect.DeepEqual(s, before) {
		return s, nil
	}
	s.UpdatedAt = t.after(before.UpdatedAt)
	return s, sites.update(t, s)
}

// withoutFacts returns what SetSite must leave alone.
func withoutFacts(s corral.Site) corral.Site {
	return corral.Site{ID: s.ID, Name: s.Name, Owner: s.Owner, State: s.State, Reason: s.Reason, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt}
}
