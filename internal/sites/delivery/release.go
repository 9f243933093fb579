package delivery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/packages/htcondor"
)

// Newest returns the name of the catalog's newest package for a pool on this machine. If there is none, it returns
// the folder of the HTCondor installed here. The error is Unsatisfiable if there is neither.
func (c *Catalog) Newest(ctx context.Context) (ref string, err error) {
	p, unfit, err := c.newestPool(ctx)
	if p.Name == "" && err == nil {
		return installed(unfit)
	}
	return p.Name, err
}

// Release returns the folder and version of an HTCondor for a pool on this machine. ref is an absolute folder, which
// is used in place; or the name of a package in the catalog, which is unpacked once below corrald's cache; or "" for
// the newest. The error is NotFound if the package or folder does not exist, Invalid if it is not an HTCondor, and
// Unsatisfiable if none is available or it does not run here.
func (c *Catalog) Release(ctx context.Context, ref string) (dir, version string, err error) {
	if ref == "" {
		if ref, err = c.Newest(ctx); err != nil {
			return "", "", err
		}
	}
	if filepath.IsAbs(ref) {
		version, err = htcondor.Version(ref)
		return filepath.Clean(ref), version, err
	}
	p, err := store.Read(ctx, c.db.Shared(), func(tx *store.Tx) (corral.Package, error) { return tx.PackageNamed(ref) })
	switch {
	case corral.KindOf(err) == corral.NotFound:
		return "", "", corral.Errorf(corral.NotFound,
			"HTCondor %q is neither an absolute path nor the name of a package in the catalog", ref)
	case err != nil:
		return "", "", fmt.Errorf("looking up package %s: %w", ref, err)
	case p.What != htcondor.Pool:
		return "", "", corral.Errorf(corral.Invalid, "package %s is a package of %s: a pool needs one of %s",
			p.Name, p.What, htcondor.Pool)
	}
	if _, err := packages.Choose(machine(), []packages.Package{signedOf(p).Package}); err != nil {
		return "", "", err
	}
	return c.unpacked(ctx, signedOf(p))
}

// machine describes this machine for packages that bring their own libc; packages for pools always do.
func machine() corral.Platform {
	return corral.Platform{OS: "linux", Arch: htcondor.Arch()}
}

// newestPool returns the catalog's newest package for a pool that runs on this machine, or the zero value if there is
// none; unfit is the reason why the available packages do not fit.
func (c *Catalog) newestPool(ctx context.Context) (newest packages.Signed, unfit string, err error) {
	var available []packages.Package
	signed := map[string]packages.Signed{} // :: digest → package
	all, err := c.all(ctx)
	for _, p := range all {
		if p.What == htcondor.Pool {
			available = append(available, signedOf(p).Package)
			signed[p.Digest] = signedOf(p)
		}
	}
	if err != nil {
		return newest, "", err
	}
	p, err := packages.Choose(machine(), available)
	if err != nil && len(available) > 0 {
		unfit = "; " + err.Error()
	}
	return signed[p.Digest], unfit, nil
}

// installed returns the folder of the HTCondor whose condor_master is found in PATH. unfit is the reason why the
// available packages do not fit.
func installed(unfit string) (dir string, err error) {
	master, err := exec.LookPath("condor_master")
	if err == nil {
		master, err = filepath.EvalSymlinks(master)
	}
	if err != nil {
		return "", corral.Errorf(corral.Unsatisfiable,
			"HTCondor was not found here: `corral package build --from-debian trixie` makes a package%s", unfit)
	}
	return filepath.Dir(filepath.Dir(master)), nil // for DIR/sbin/condor_master
}

// unpacked returns the complete folder of the package below corrald's cache. It fetches the archive if corrald's mirror
// lacks it. An existing folder is checked file by file each time: a pool that starts from an incomplete release fails
// in ways that look like defects of HTCondor.
func (c *Catalog) unpacked(ctx context.Context, s packages.Signed) (dir, version string, err error) {
	digits, err := packages.HexOf(s.Digest)
	if err != nil {
		return "", "", err
	}
	dir = filepath.Join(c.releasesDir(), digits)
	c.releases.Lock()
	defer c.releases.Unlock()
	switch _, err := packages.Check(dir); {
	case err == nil:
		return dir, s.Version, nil
	case !errors.Is(err, fs.ErrNotExist):
		if err := setAside(dir); err != nil {
			return "", "", fmt.Errorf("unpacking package %s again: %w", s.Name, err)
		}
	}
	if err := s.Check(c.depot.trusted); err != nil {
		return "", "", err
	}
	if _, err := c.ensure(ctx, s, time.Now()); err != nil {
		return "", "", err
	}
	archive, err := c.depot.mirror.Path(s.Package)
	if err != nil {
		return "", "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", "", fmt.Errorf("unpacking package %s: %w", s.Name, err)
	}
	return dir, s.Version, packages.Unpack(archive, s.Package, dir)
}

// releasesDir returns the folder in which packages for pools are unpacked.
func (c *Catalog) releasesDir() string { return filepath.Join(filepath.Dir(c.depot.dir), "releases") }

// Prune removes the releases that were unpacked for Release, except the folders in keep. They can be unpacked again.
func (c *Catalog) Prune(keep []string) error {
	c.releases.Lock()
	defer c.releases.Unlock()
	entries, err := os.ReadDir(c.releasesDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		dir := filepath.Join(c.releasesDir(), e.Name())
		if e.IsDir() && !slices.Contains(keep, dir) {
			err = errors.Join(err, setAside(dir))
		}
	}
	return wrap.Errorf(err, "removing releases")
}

// setAside removes a release that is damaged or no longer needed. It is renamed first, so that an incomplete one is
// never visible; files that a running pool has open remain until it ends.
func setAside(dir string) error {
	old, err := os.MkdirTemp(filepath.Dir(dir), ".damaged-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(old)
	return os.Rename(dir, filepath.Join(old, "release"))
}

// CheckGlidein returns an Unsatisfiable error if the catalog has no package with which workers at the site could join
// the cluster. It returns nil if not enough is known about the site or the cluster.
func (c *Catalog) CheckGlidein(ctx context.Context, site corral.Site, cluster corral.Cluster) error {
	if cluster.Kind != corral.Condor || site.Platform == (corral.Platform{}) {
		return nil
	}
	n, err := store.Read(ctx, c.db.Owner(site.Owner), func(tx *store.Tx) (reconcile.Need, error) {
		return NeedOf(tx, site, cluster)
	})
	if err == nil && n.Unfit != "" {
		return corral.Errorf(corral.Unsatisfiable, "%s", n.Unfit)
	}
	return err
}

// NeedOf chooses the worker package for a cluster of kind condor at a site: the newest that runs there and is not
// newer than the pool. A newer worker would join the pool but never match a job. If there is no such package, Unfit
// lists the reasons why none fits. If the pool's version is unknown, both the package and Unfit are empty.
func NeedOf(tx *store.Tx, site corral.Site, cluster corral.Cluster) (reconcile.Need, error) {
	n := reconcile.Need{Cluster: cluster}
	if cluster.Version == "" {
		return n, nil
	}
	all, err := tx.Packages(store.Filter{})
	if err != nil {
		return n, err
	}
	var fit []packages.Package
	var newer []string
	for _, p := range all {
		switch {
		case p.What != htcondor.Worker:
		case packages.CompareVersions(p.Version, cluster.Version) > 0:
			newer = append(newer, fmt.Sprintf("%s is newer than the pool's HTCondor %s", p.Name, cluster.Version))
		default:
			fit = append(fit, signedOf(p).Package)
		}
	}
	p, err := packages.Choose(site.Platform, fit)
	if err == nil {
		n.Package, n.Version, n.Digest = p.Name, p.Version, p.Digest
		return n, nil
	}
	why := append([]string{err.Error()}, newer...)
	if len(fit) == 0 {
		why[0] = fmt.Sprintf("none for %s/%s is in the catalog", site.Platform.OS, site.Platform.Arch)
	}
	n.Unfit = fmt.Sprintf("site %s needs a worker package of HTCondor for cluster %s: %s; "+
		"`corral package build` makes one", site.Name, cluster.Name, strings.Join(why, "; "))
	return n, nil
}
