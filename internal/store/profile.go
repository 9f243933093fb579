package store

import (
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
)

var profiles = table[corral.Profile]{
	noun:  corral.ObjectProfile,
	name:  "profiles",
	owner: "owner",
	columns: func(p *corral.Profile) []column {
		return []column{
			{"id", orNull(&p.ID)},
			{"name", &p.Name},
			{"owner", &p.Owner},
			{"sources", asJSON(&p.Sources)},
			{"runs", &p.Runs},
			{"kinds", &p.Kinds},
			{"tasks", &p.Tasks},
			{"digest", &p.Digest},
			{"document", asJSON(&p.Document)},
			{"state", &p.State},
			{"created_at_ms", at(&p.CreatedAt)},
			{"updated_at_ms", at(&p.UpdatedAt)},
		}
	},
	about: func(p corral.Profile) []Subject {
		return []Subject{{corral.ObjectProfile, int64(p.ID)}}
	},
}

// FreeProfileName returns a Conflict error if a profile of the owner that is not DELETED has the name.
func (t *Tx) FreeProfileName(owner, name string) error {
	return profiles.free(t, func(other corral.Profile) error {
		return corral.Errorf(corral.Conflict, "profile %q exists already, with id %d: merge into it, or remove it",
			other.Name, other.ID)
	}, "owner = ? and name = ? and state <> 'DELETED'", owner, name)
}

// CreateProfile stores p as READY and sets its ID, State and times. It returns a Conflict error if p's name is not
// free.
func (t *Tx) CreateProfile(p corral.Profile) (corral.Profile, error) {
	if err := t.FreeProfileName(p.Owner, p.Name); err != nil {
		return corral.Profile{}, err
	}
	p.ID, p.State, p.CreatedAt, p.UpdatedAt = 0, corral.ProfileReady, t.now, t.now
	return profiles.create(t, p, string(p.State))
}

// GrowProfile replaces the profile that has p's ID with p, the result of a merge, unless the stored profile's digest
// is no longer was. In that case the error is Unavailable, because the merge can be repeated with the current
// profile.
func (t *Tx) GrowProfile(p corral.Profile, was string) (corral.Profile, error) {
	now, err := t.Profile(p.ID)
	if err != nil {
		return p, err
	}
	if now.State != corral.ProfileReady || now.Digest != was {
		return now, corral.Errorf(corral.Unavailable, "profile %s was changed at the same time: nothing was done, "+
			"send the request again", now.Name)
	}
	p.UpdatedAt = t.after(now.UpdatedAt)
	return p, profiles.save(t, p, corral.Entry{Object: corral.ObjectProfile, Of: int64(p.ID), Event: "merge",
		From: string(p.State), To: string(p.State), Reason: strings.Join(p.Sources[len(now.Sources):], ", ")})
}

// Profile returns the profile with this id, DELETED or not.
func (t *Tx) Profile(id corral.ProfileID) (corral.Profile, error) {
	return profiles.one(t, id, "id = ?", id)
}

// ProfileNamed returns the owner's profile that currently has the name. DELETED profiles do not keep their names.
func (t *Tx) ProfileNamed(owner, name string) (corral.Profile, error) {
	return profiles.one(t, name, "owner = ? and name = ? and state <> 'DELETED'", owner, name)
}

// Profiles lists profiles, without their documents.
func (t *Tx) Profiles(f Filter) ([]corral.Profile, error) {
	brief := profiles
	brief.columns = func(p *corral.Profile) []column {
		return slices.DeleteFunc(profiles.columns(p), func(c column) bool { return c.name == "document" })
	}
	return brief.filtered(t, f)
}

// DeleteProfile moves a profile from READY to DELETED and removes its document. It returns a Conflict error if the
// profile is already DELETED.
func (t *Tx) DeleteProfile(id corral.ProfileID, reason string) (corral.Profile, error) {
	p, err := t.Profile(id)
	if err != nil {
		return p, err
	}
	if p.State == corral.ProfileDeleted {
		return p, corral.Errorf(corral.Conflict, "profile %s is %s", p.Name, p.State)
	}
	p.State, p.Document, p.UpdatedAt = corral.ProfileDeleted, nil, t.after(p.UpdatedAt)
	return p, profiles.save(t, p, corral.Entry{Object: corral.ObjectProfile, Of: int64(id), Event: "delete",
		From: string(corral.ProfileReady), To: string(p.State), Reason: reason})
}
