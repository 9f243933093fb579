package store

import (
	"time"

	"github.com/corral-pilot/corral"
)

var mirrors = table[corral.Mirror]{
	noun: corral.ObjectMirror,
	name: "mirrors",
	columns: `
	id,
	name,
	owner,
	url,
	state,
	reason,
	successes,
	failures,
	bytes_per_s,
	measured_at_ms,
	checked_at_ms,
	created_at_ms,
	updated_at_ms`,
	joined: `,
	(select count(*) from replicas where mirror_id = mirrors.id)`,
	fields: func(m *corral.Mirror) []any {
		return []any{
			orNull(&m.ID),
			&m.Name,
			&m.Owner,
			&m.URL,
			&m.State,
			&m.Reason,
			&m.Health.Successes,
			&m.Health.Failures,
			&m.Health.BytesPerS,
			at(&m.Health.MeasuredAt),
			at(&m.CheckedAt),
			at(&m.CreatedAt),
			at(&m.UpdatedAt),
			&m.Packages,
		}
	},
	about: func(m corral.Mirror) []Subject {
		return []Subject{{corral.ObjectMirror, int64(m.ID)}}
	},
}

// CreateMirror stores m as READY; its ID, State, health and times are set here. A Conflict error if a
// mirror that is not DELETED has the name or the URL.
func (t *Tx) CreateMirror(m corral.Mirror) (corral.Mirror, error) {
	others, err := t.Mirrors(Filter{})
	if err != nil {
		return corral.Mirror{}, err
	}
	for _, other := range others {
		if other.Name == m.Name || other.URL == m.URL {
			return corral.Mirror{}, corral.Errorf(corral.Conflict, "mirror %q has that name or URL already, with id %d", other.Name, other.ID)
		}
	}
	m = corral.Mirror{Name: m.Name, Owner: m.Owner, URL: m.URL, State: corral.MirrorReady, CreatedAt: t.now, UpdatedAt: t.now}
	return mirrors.create(t, m, string(m.State))
}

// Mirror returns the mirror with this id, DELETED or not.
func (t *Tx) Mirror(id corral.MirrorID) (corral.Mirror, error) {
	return mirrors.one(t, id, "id = ?", id)
}

// MirrorNamed returns the mirror that has the name now; DELETED ones have none.
func (t *Tx) MirrorNamed(name string) (corral.Mirror, error) {
	return mirrors.one(t, name, "name = ? and state <> 'DELETED'", name)
}

// Mirrors lists mirrors.
func (t *Tx) Mirrors(f Filter) ([]corral.Mirror, error) {
	var c conditions
	c.filter(f)
	return mirrors.list(t, c)
}

// MirrorsOf lists the mirrors that say they have a package.
func (t *Tx) MirrorsOf(id corral.PackageID) ([]corral.Mirror, error) {
	var c conditions
	c.filter(Filter{})
	c.add("id in (select mirror_id from replicas where package_id = ?)", id)
	return mirrors.list(t, c)
}

// CheckMirror records a look at a mirror: the packages that its index lists, which replace those of
// the look before, or why it could not be read; then they stay.
func (t *Tx) CheckMirror(id corral.MirrorID, has []corral.PackageID, problem string) (corral.Mirror, error) {
	m, err := t.Mirror(id)
	if err != nil {
		return m, err
	}
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
	if news { // a check an hour that says the same is none
		if err := t.Log(corral.ObjectMirror, int64(id), "check", problem); err != nil {
			return m, err
		}
	}
	return t.Mirror(id)
}

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

// MeasureMirror adds a transfer, which ended now, to what is known of a mirror's health.
func (t *Tx) MeasureMirror(id corral.MirrorID, ok bool, bytes int64, took time.Duration) error {
	_, err := mirrors.set(t, id, func(m *corral.Mirror) error {
		m.Health, m.UpdatedAt = m.Health.After(ok, bytes, took, t.now), t.after(m.UpdatedAt)
		return nil
	})
	return err
}

// DeleteMirror moves a mirror from READY to DELETED; it has no package from then on. A Conflict error if
// it is DELETED already.
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
