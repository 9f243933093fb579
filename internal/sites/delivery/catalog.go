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
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
)

// A Catalog knows all worker packages and where they are: the store's packages, mirrors and replicas,
// and the archives of corrald's own mirror. Nothing gets into it that no trusted key signed: a signature is checked
// before a byte is fetched, and the archive against the signature before it is put into the mirror. So whoever has a
// mirror can keep a package from us, and not give us another one. Its methods may be called from several goroutines at
// once.
type Catalog struct {
	db    *store.DB
	depot *Depot
	fetch *staging.Fetcher

	releases sync.Mutex // one at a time unpacks a release
}

// NewCatalog returns the catalog of db, with the archives of d. schemes says how mirrors are read whose URLs have other
// schemes than http, https and file.
func NewCatalog(lg *slog.Logger, db *store.DB, d *Depot, schemes map[string]staging.Open) *Catalog {
	f := staging.NewFetcher(lg)
	maps.Copy(f.Open, schemes)
	return &Catalog{db: db, depot: d, fetch: f}
}

// described is how the catalog holds a signed package.
func described(s packages.Signed) corral.Package {
	return corral.Package{
		Name: s.Name, What: s.What, Version: s.Version, Platform: s.Platform, Digest: s.Digest, SizeBytes: s.SizeBytes,
		Key: string(s.Key), Signature: s.Signature,
	}
}

// signedOf is what described was made of.
func signedOf(p corral.Package) packages.Signed {
	return packages.Signed{
		Package: packages.Package{Name: p.Name, What: p.What, Version: p.Version, Platform: p.Platform,
			Digest: p.Digest, SizeBytes: p.SizeBytes},
		Key: packages.PublicKey(p.Key), Signature: p.Signature,
	}
}

// Register puts the pilots that this corrald was started with into the catalog, in place of former
// builds of the same name that no site uses any more.
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
	if err != nil {
		return fmt.Errorf("registering the pilot's package: %w", err)
	}
	return nil
}

// supersede deletes what corrald itself made under the name before.
func (c *Catalog) supersede(tx *store.Tx, s packages.Signed) error {
	all, err := tx.Packages(store.Filter{})
	if err != nil {
		return err
	}
	for _, old := range all {
		if old.Name != s.Name || old.Owner != store.Actor {
			continue
		}
		_, err := tx.DeletePackage(old.ID, "there is a newer build")
		if err != nil && corral.KindOf(err) != corral.Conflict { // a site uses it
			return err
		}
	}
	return nil
}

// choose returns the worker package for a platform, an Unsatisfiable error that says why if there is
// none. What this corrald was started with goes before what was imported.
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
	for _, p := range all { // another version may not speak our worker protocol
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
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	return all, nil
}

// of returns the package with this digest, with its signature, and its mirrors.
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
	if err != nil {
		return p, nil, fmt.Errorf("looking up package %s: %w", digest, err)
	}
	return p, mirrors, nil
}

// Import brings the archive at source, an absolute path or a URL, into corrald's mirror, and returns
// what the catalog is to hold. The signature is the content of a signature file; nil: it stands beside
// the archive. With sign corrald vouches for a local archive itself. The error is Forbidden, and names
// the package, if nobody vouches for it whom corrald trusts.
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

// look reports why a local archive cannot be read, before its signature is looked for.
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
	if err != nil {
		return s, fmt.Errorf("there is none beside the archive: %w", err)
	}
	return s, nil
}

// download brings the archive of s, whose signature was checked, from one of the URLs into the mirror.
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

// Verify checks the signature of a package of the catalog, and its archive byte for byte, which is
// fetched if corrald's own mirror lacks it. The error names the package.
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

// Check reads a mirror's index and returns the packages in it that a trusted key signed. The error says
// why it cannot be read.
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
