package store

import (
	"github.com/corral-pilot/corral"
)

// The catalog lists the packages that can be installed at sites; the table replicas records which mirrors have them.
// A package is identified by its digest. Names may repeat: all builds of a version have the same name.
var catalog = table[corral.Package]{
	noun: corral.ObjectPackage,
	name: "packages",
	columns: func(p *corral.Package) []column {
		return []column{
			{"id", orNull(&p.ID)},
			{"name", &p.Name},
			{"owner", &p.Owner},
			{"what", &p.What},
			{"version", &p.Version},
			{"os", &p.Platform.OS},
			{"arch", &p.Platform.Arch},
			{"libc", &p.Platform.Libc},
			{"digest", &p.Digest},
			{"size_bytes", &p.SizeBytes},
			{"key", &p.Key},
			{"signature", &p.Signature},
			{"state", &p.State},
			{"reason", &p.Reason},
			{"created_at_ms", at(&p.CreatedAt)},
			{"updated_at_ms", at(&p.UpdatedAt)},
			{`(select json_group_array(m.name order by m.id) from replicas as r join mirrors as m on m.id = r.mirror_id
				where r.package_id = packages.id and m.state <> 'DELETED')`, asJSON(&p.Mirrors)},
		}
	},
	about: func(p corral.Package) []Subject {
		return []Subject{{corral.ObjectPackage, int64(p.ID)}}
	},
}

// CreatePackage stores p as READY and sets its ID, State and times. The caller has checked its signature. It returns
// a Conflict error if a package that is not DELETED has the same digest.
func (t *Tx) CreatePackage(p corral.Package) (corral.Package, error) {
	err := catalog.free(t, func(other corral.Package) error {
		return corral.Errorf(corral.Conflict, "package %s is in the catalog already, with id %d", other.Name, other.ID)
	}, "digest = ? and state <> 'DELETED'", p.Digest)
	if err != nil {
		return corral.Package{}, err
	}
	p.ID, p.State, p.Reason, p.CreatedAt, p.UpdatedAt = 0, corral.PackageReady, "", t.now, t.now
	return catalog.create(t, p, string(p.State))
}

// Package returns the package with this id, DELETED or not.
func (t *Tx) Package(id corral.PackageID) (corral.Package, error) {
	return catalog.one(t, id, "id = ?", id)
}

// PackageOf returns the package that currently has the digest. DELETED packages do not keep their digests.
func (t *Tx) PackageOf(digest string) (corral.Package, error) {
	return catalog.one(t, digest, "digest = ? and state <> 'DELETED'", digest)
}

// PackageNamed returns the newest package that currently has the name, because builds of one version share it.
func (t *Tx) PackageNamed(name string) (corral.Package, error) {
	return catalog.one(t, name, "name = ? and state <> 'DELETED' order by id desc limit 1", name)
}

// Packages lists packages.
func (t *Tx) Packages(f Filter) ([]corral.Package, error) {
	return catalog.filtered(t, f)
}

// DeletePackage moves a package from READY to DELETED and removes it from all mirrors' lists. It returns a Conflict
// error if the package is already DELETED or is used by a site that is not DELETED.
func (t *Tx) DeletePackage(id corral.PackageID, reason string) (corral.Package, error) {
	p, err := t.Package(id)
	if err != nil {
		return corral.Package{}, err
	}
	if p.State == corral.PackageDeleted {
		return corral.Package{}, corral.Errorf(corral.Conflict, "package %s is %s", p.Name, p.State)
	}
	var users int
	const query = "select count(*) from sites where package_digest = ? and state <> 'DELETED'"
	if err := t.row(query, []any{p.Digest}, &users); err != nil {
		return corral.Package{}, err
	}
	if users > 0 {
		return corral.Package{}, corral.Errorf(corral.Conflict, "package %s is installed at %d sites", p.Name, users)
	}
	var pools string // of all owners; a cluster on the newest HTCondor names no package and can use any other
	const made = "select coalesce(group_concat('cluster ' || name, ', '), '') from clusters " +
		"where htcondor = ? and state <> 'DELETED'"
	if err := t.row(made, []any{p.Name}, &pools); err != nil {
		return corral.Package{}, err
	}
	if pools != "" {
		return corral.Package{}, corral.ErrorAt(corral.Conflict, "package", "%s is in use by %s: upgrade or "+
			"remove that first", p.Name, pools)
	}
	if _, err := t.exec("delete from replicas where package_id = ?", id); err != nil {
		return corral.Package{}, err
	}
	p.Mirrors = []string{}
	p.State, p.Reason, p.UpdatedAt = corral.PackageDeleted, reason, t.after(p.UpdatedAt)
	return p, catalog.save(t, p, corral.Entry{Object: corral.ObjectPackage, Of: int64(id), Event: "delete",
		From: string(corral.PackageReady), To: string(p.State), Reason: reason})
}
