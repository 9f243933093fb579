package delivery

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/fault"
	"github.com/corral-pilot/corral/internal/kit/version"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
)

// A Catalog lists all worker packages and their locations: the store's packages, mirrors and replicas, and the
// archives of corrald's own mirror. It accepts only packages signed by a trusted key: it checks the signature before
// it fetches any data, and the archive against the signature before the archive enters the mirror. So a mirror can
// withhold a package but cannot substitute one. Its methods may be called concurrently.
type Catalog struct {
	db    *store.DB
	depot *Depot
	fetch *staging.Fetcher

	releases sync.Mutex // held while a release is unpacked
}

// NewCatalog returns the catalog of db, with the archives of d. schemes adds readers for mirror URLs with schemes
// other than http, https and file.
func NewCatalog(lg *slog.Logger, db *store.DB, d *Depot, schemes map[string]staging.Open) *Catalog {
	f := staging.NewFetcher(lg)
	maps.Copy(f.Open, schemes)
	return &Catalog{db: db, depot: d, fetch: f}
}

// described returns the catalog's form of a signed package.
func described(s packages.Signed) corral.Package {
	return corral.Package{
		Name: s.Name, What: s.What, Version: s.Version, Platform: s.Platform, Digest: s.Digest, SizeBytes: s.SizeBytes,
		Key: string(s.Key), Signature: s.Signature,
	}
}

// signedOf is the inverse of described.
func signedOf(p corral.Package) packages.Signed {
	return packages.Signed{
		Package: packages.Package{Name: p.Name, What: p.What, Version: p.Version, Platform: p.Platform,
			Digest: p.Digest, SizeBytes: p.SizeBytes},
		Key: packages.PublicKey(p.Key), Signature: p.Signature,
	}
}

// Register adds the pilots that this corrald was started with to the catalog. They replace earlier builds of the same
// name that no site uses any more.
func (c *Catalog) Register(ctx context.Context) error {
	err := c.db.Shared().Write(ctx, store.Actor, func(tx *store.Tx) error {
		for _, s := range c.depot.stock {
			if _, err := tx.PackageOf(s.Digest); corral.KindOf(err) != corral.NotFound {
				if err != nil {
					return err
				}
				continue
			}
			if err := c.supersede(tx, s); err != nil {
				return err
			}
			p := described(s)
			p.Owner = store.Actor
			if _, err := admit.Package(tx, p); err != nil {
				return err
			}
		}
		return nil
	})
	return wrap.Errorf(err, "registering the pilot's package")
}

// supersede deletes earlier packages of the same name that corrald itself created.
func (c *Catalog) supersede(tx *store.Tx, s packages.Signed) error {
	all, err := tx.Packages(store.Filter{})
	if err != nil {
		return err
	}
	for _, old := range all {
		if old.Name != s.Name || old.Owner != store.Actor {
			continue
		}
		_, err := tx.DeletePackage(old.ID, "it was replaced by a newer build")
		if err != nil && corral.KindOf(err) != corral.Conflict { // Conflict: a site uses it
			return err
		}
	}
	return nil
}

// choose returns the worker package for a platform, or an Unsatisfiable error with the reason if there is none. The
// pilots that this corrald was started with take precedence over imported ones.
func (c *Catalog) choose(ctx context.Context, platform corral.Platform) (packages.Package, error) {
	var own, imported []packages.Package
	for _, s := range c.depot.stock {
		own = append(own, s.Package)
	}
	if p, err := packages.Choose(platform, own); err == nil {
		return p, nil
	}
	all, err := c.all(ctx)
	if err != nil {
		return packages.Package{}, err
	}
	for _, p := range all { // another version may use a different worker protocol
		if p.What == pilotPackage && p.Version == version.String() && !slices.Contains(own, signedOf(p).Package) {
			imported = append(imported, signedOf(p).Package)
		}
	}
	return packages.Choose(platform, append(own, imported...))
}

// all returns the packages of the catalog.
func (c *Catalog) all(ctx context.Context) ([]corral.Package, error) {
	all, err := store.Read(ctx, c.db.Shared(), func(tx *store.Tx) ([]corral.Package, error) {
		return tx.Packages(store.Filter{})
	})
	return all, wrap.Errorf(err, "listing packages")
}

// of returns the package with this digest, including its signature, and its mirrors.
func (c *Catalog) of(ctx context.Context, digest string) (p packages.Signed, mirrors []corral.Mirror, err error) {
	err = c.db.Shared().View(ctx, func(tx *store.Tx) error {
		found, err := tx.PackageOf(digest)
		if err != nil {
			return err
		}
		p = signedOf(found)
		mirrors, err = tx.MirrorsOf(found.ID)
		return err
	})
	return p, mirrors, wrap.Errorf(err, "looking up package %s", digest)
}

// Import copies the archive at source, an absolute path or a URL, into corrald's mirror and returns its catalog
// entry. signature is the content of a signature file; if it is nil, the file beside the archive is used. With sign,
// corrald signs a local archive itself. If no trusted key has signed the package, the error is Forbidden and names
// it.
func (c *Catalog) Import(ctx context.Context, source string, signature []byte, sign bool) (corral.Package, error) {
	at, err := sourceURL(source)
	if err != nil {
		return corral.Package{}, err
	}
	if sign {
		return c.adopt(ctx, at)
	}
	if err := look(at); err != nil {
		return corral.Package{}, err
	}
	s, err := c.signature(ctx, at, signature)
	if err != nil {
		return corral.Package{}, corral.ErrorAt(corral.KindOr(err, corral.Invalid), "signature", "%w", err)
	}
	if err := s.Check(c.depot.trusted); err != nil {
		return corral.Package{}, err
	}
	if _, err := c.download(ctx, s, []string{at.String()}); err != nil {
		return corral.Package{}, corral.ErrorAt(corral.KindOr(err, corral.Failed), "source", "%w", err)
	}
	return described(s), nil
}

func sourceURL(source string) (*url.URL, error) {
	if filepath.IsAbs(source) {
		return &url.URL{Scheme: "file", Path: filepath.Clean(source)}, nil
	}
	u, err := url.Parse(source)
	if err != nil || !slices.Contains([]string{"http", "https", "ftp", "sftp", "file"}, u.Scheme) {
		return nil, corral.ErrorAt(corral.Invalid, "source",
			"want an absolute path, or a URL with http, https, ftp, sftp or file")
	}
	if _, password := u.User.Password(); password && u.Scheme == "sftp" {
		return nil, corral.ErrorAt(corral.Invalid, "source", "an sftp URL takes no password: use a key, or an agent")
	}
	return u, nil
}

// look returns an error if a local archive cannot be read. It is called before the archive's signature is read.
func look(at *url.URL) error {
	if at.Scheme != "file" || at.Host != "" {
		return nil
	}
	f, err := packages.Open(at.Path)
	if err != nil {
		return corral.ErrorAt(corral.KindOf(err), "source", "%w", err)
	}
	return f.Close()
}

// adopt signs a local archive.
func (c *Catalog) adopt(ctx context.Context, at *url.URL) (corral.Package, error) {
	if at.Scheme != "file" {
		return corral.Package{}, corral.ErrorAt(corral.Invalid, "sign", "only a local archive can be signed here")
	}
	p, err := c.depot.mirror.Add(ctx, at.Path)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return corral.Package{}, cause
	}
	if err != nil {
		return corral.Package{}, corral.ErrorAt(corral.KindOr(err, corral.Failed), "source", "%w", err)
	}
	s := c.depot.signer.Sign(p)
	return described(s), c.depot.vouch(s)
}

func (c *Catalog) signature(ctx context.Context, at *url.URL, given []byte) (packages.Signed, error) {
	if given != nil {
		return packages.ReadSigned(bytes.NewReader(given))
	}
	s, err := c.fetch.Signature(ctx, at.String())
	return s, wrap.Errorf(err, "there is none beside the archive")
}

// download fetches the archive of s, whose signature was checked, from one of the URLs into the mirror.
func (c *Catalog) download(ctx context.Context, s packages.Signed, urls []string) ([]staging.Try, error) {
	tmp, err := c.depot.mirror.Room()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	archive := filepath.Join(tmp, "archive")
	tries, err := fault.At(ctx, fault.Download, func(ctx context.Context) ([]staging.Try, error) {
		return c.fetch.Fetch(ctx, staging.Source{Package: s.Package, URLs: urls}, archive)
	})
	if err != nil {
		return tries, err
	}
	p, err := packages.Inspect(ctx, archive)
	if err != nil {
		return tries, err
	}
	if p != s.Package {
		return tries, corral.ErrorAt(corral.Forbidden, "package "+s.Name, "the archive calls itself %s", p.Name)
	}
	if _, err := c.depot.mirror.Add(ctx, archive); err != nil {
		return tries, err
	}
	return tries, c.depot.vouch(s)
}

// Verify checks the signature of a package in the catalog, and its archive byte for byte. If corrald's own mirror
// lacks the archive, Verify fetches it. The error names the package.
func (c *Catalog) Verify(ctx context.Context, p corral.Package) error {
	s := signedOf(p)
	if err := s.Check(c.depot.trusted); err != nil {
		return err
	}
	if _, err := c.ensure(ctx, s, time.Now()); err != nil {
		return err
	}
	archive, err := c.depot.mirror.Path(s.Package)
	if err != nil {
		return err
	}
	return packages.Verify(ctx, archive, s.Package)
}

// Drop removes a package's archive from corrald's own mirror.
func (c *Catalog) Drop(p corral.Package) error {
	c.depot.mu.Lock()
	defer c.depot.mu.Unlock()
	return c.depot.mirror.Remove(signedOf(p).Package)
}

// Check reads a mirror's index and returns its packages that were signed by a trusted key. It returns an error if the
// index cannot be read.
func (c *Catalog) Check(ctx context.Context, m corral.Mirror) ([]corral.Package, error) {
	index, err := c.fetch.Index(ctx, m.URL)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", staging.IndexName, err)
	}
	var good []corral.Package
	for _, s := range index {
		if s.Check(c.depot.trusted) == nil {
			good = append(good, described(s))
		}
	}
	return good, nil
}
