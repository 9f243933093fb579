package store

import (
	"time"

	"github.com/corral-pilot/corral"
)

// Mirrors are servers that hold copies of packages. Their health is stored with them: the numbers of successful and
// failed transfers, and their speed.
var mirrors = table[corral.Mirror]{
	noun: corral.ObjectMirror,
	name: "mirrors",
	columns: func(m *corral.Mirror) []column {
		return []column{
			{"id", orNull(&m.ID)},
			{"name", &m.Name},
			{"owner", &m.Owner},
			{"url", &m.URL},
			{"state", &m.State},
			{"reason", &m.Reason},
			{"successes", &m.Health.Successes},
			{"failures", &m.Health.Failures},
			{"bytes_per_s", &m.Health.BytesPerS},
			{"measured_at_ms", at(&m.Health.MeasuredAt)},
			{"checked_at_ms", at(&m.CheckedAt)},
			{"created_at_ms", at(&m.CreatedAt)},
			{"updated_at_ms", at(&m.UpdatedAt)},
			{"(select count(*) from replicas where mirror_id = mirrors.id)", &m.Packages},
		}
	},
	about: func(m corral.Mirror) []Subject {
		return []Subject{{corral.ObjectMirror, int64(m.ID)}}
	},
}

// CreateMirror stores m as READY and sets its ID, State, health and times. It returns a Conflict error if a mirror
// that is not DELETED has the same name or URL.
func (t *Tx) CreateMirror(m corral.Mirror) (corral.Mirror, error) {
	err := mirrors.free(t, func(other corral.Mirror) error {
		return corral.Errorf(corral.Conflict, "mirror %q has that name or URL already, with id %d",
			other.Name, other.ID)
	}, "(name = ? or url = ?) and state <> 'DELETED' order by id limit 1", m.Name, m.URL)
	if err != nil {
		return corral.Mirror{}, err
	}
	m = corral.Mirror{
		Name: m.Name, Owner: m.Owner, URL: m.URL, State: corral.MirrorReady, CreatedAt: t.now, UpdatedAt: t.now,
	}
	return mirrors.create(t, m, string(m.State))
}

// Mirror returns the mirror with this id, DELETED or not.
func (t *Tx) Mirror(id corral.MirrorID) (corral.Mirror, error) {
	return mirrors.one(t, id, "id = ?", id)
}

// MirrorNamed returns the mirror that currently has the name. DELETED mirrors do not keep their names.
func (t *Tx) MirrorNamed(name string) (corral.Mirror, error) {
	return mirrors.one(t, name, "name = ? and state <> 'DELETED'", name)
}

// Mirrors lists mirrors.
func (t *Tx) Mirrors(f Filter) ([]corral.Mirror, error) {
	return mirrors.filtered(t, f)
}

// MirrorsOf lists the mirrors whose indexes list a package.
func (t *Tx) MirrorsOf(id corral.PackageID) ([]corral.Mirror, error) {
	var c conditions
	c.filter(Filter{})
	c.add("id in (select mirror_id from replicas where package_id = ?)", id)
	return mirrors.list(t, c)
}

// CheckMirror records a check of a mirror: either the packages that its index lists, which replace those of the
// previous check, or the problem that made the index unreadable. In that case the earlier packages are kept.
func (t *Tx) CheckMirror(id corral.MirrorID, has []corral.PackageID, problem string) (corral.Mirror, error) {
	m, err := t.Mirror(id)
	if err != nil {
		return m, err
	}
	// A mirror that cannot be read now most likely still has its packages.
	if problem == "" {
		if err := t.setReplicas(id, has); err != nil {
			return m, err
		}
	}
	news := m.CheckedAt.IsZero() || m.Reason != problem
	m.Reason, m.CheckedAt, m.UpdatedAt = problem, t.now, t.after(m.UpdatedAt)
	if err := mirrors.update(t, m); err != nil {
		return m, err
	}
	if news { // the history does not repeat unchanged results
		if err := t.Log(corral.ObjectMirror, int64(id), "check", problem); err != nil {
			return m, err
		}
	}
	return t.Mirror(id)
}

// setReplicas replaces the list of a mirror's packages. The list may contain duplicates, because the index comes from
// the mirror.
func (t *Tx) setReplicas(id corral.MirrorID, has []corral.PackageID) error {
	if _, err := t.exec("delete from replicas where mirror_id = ?", id); err != nil {
		return err
	}
	for _, p := range has {
		if _, err := t.exec("insert or ignore into replicas (mirror_id, package_id) values (?, ?)", id, p); err != nil {
			return err
		}
	}
	return nil
}

// MeasureMirror adds a transfer, which has just ended, to a mirror's health figures.
func (t *Tx) MeasureMirror(id corral.MirrorID, ok bool, bytes int64, took time.Duration) error {
	_, err := mirrors.set(t, id, func(m *corral.Mirror) error {
		m.Health, m.UpdatedAt = m.Health.After(ok, bytes, took, t.now), t.after(m.UpdatedAt)
		return nil
	})
	return err
}

// DeleteMirror moves a mirror from READY to DELETED and clears its list of packages. It returns a Conflict error if
// the mirror is already DELETED.
func (t *Tx) DeleteMirror(id corral.MirrorID, reason string) (corral.Mirror, error) {
	m, err := t.Mirror(id)
	if err != nil {
		return m, err
	}
	if m.State == corral.MirrorDeleted {
		return m, corral.Errorf(corral.Conflict, "mirror %s is %s", m.Name, m.State)
	}
	if err := t.setReplicas(id, nil); err != nil {
		return m, err
	}
	m.State, m.Reason, m.Packages, m.UpdatedAt = corral.MirrorDeleted, reason, 0, t.after(m.UpdatedAt)
	return m, mirrors.save(t, m, corral.Entry{Object: corral.ObjectMirror, Of: int64(id), Event: "delete",
		From: string(corral.MirrorReady), To: string(m.State), Reason: reason})
}
