package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/decide/reconcile"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
)

// Hopeless is the reason why an action at a site can never succeed, if neither the network nor the batch system is to
// blame.
type Hopeless string

func (h Hopeless) Error() string { return string(h) }

// hopelessly turns a refusal by the site into a Hopeless error.
func hopelessly(err error) error {
	if errors.As(err, new(*gridsite.Refused)) {
		return Hopeless(err.Error())
	}
	return err
}

// A Delivery brings programs and packages to one site. It belongs to the goroutine that serves the site and connects
// to it: the Head passed to each call is the site's and stays open during the call.
type Delivery struct {
	catalog *Catalog
	supply  Supply
	site    corral.SiteID
	write   func(context.Context, func(*store.Tx) error) error

	unreached bool // no mirror answered the last setup job
}

// NewDelivery returns the delivery to a site. It records its actions in transactions of write.
func NewDelivery(
	c *Catalog, s Supply, site corral.SiteID, write func(context.Context, func(*store.Tx) error) error,
) *Delivery {
	return &Delivery{catalog: c, supply: s, site: site, write: write}
}

// Choose determines the site's platform and returns the site with that platform and the package for its pilots. The
// error is Hopeless if no package runs there.
func (d *Delivery) Choose(ctx context.Context, head gridsite.Head, site corral.Site) (corral.Site, error) {
	platform, err := head.Platform(ctx)
	if err != nil {
		return site, fmt.Errorf("finding the platform of site %s: %w", site.Name, err)
	}
	p, err := d.catalog.choose(ctx, platform)
	if err != nil {
		return site, Hopeless(err.Error())
	}
	site.Install(platform, p.Name, p.Digest)
	return site, nil
}

// Newer returns the package that should replace the one that a READY site has for its pilots, or the zero value if the
// site's package is current. Each build of corrald brings its own package.
func (d *Delivery) Newer(ctx context.Context, site corral.Site) (reconcile.Package, error) {
	if site.State != corral.SiteReady || site.PackageDigest == "" {
		return reconcile.Package{}, nil
	}
	p, err := d.catalog.choose(ctx, site.Platform)
	if err != nil && corral.KindOf(err) != corral.Unsatisfiable || p.Digest == site.PackageDigest {
		return reconcile.Package{}, err
	}
	return reconcile.Package{Name: p.Name, Digest: p.Digest}, nil // zero if no package runs there
}

// Boot copies the pilot binary to the place where setup and cleanup jobs expect it (BootProgram), unless it is
// already there. The error is Hopeless if the site refuses the binary or the claim to its root.
func (d *Delivery) Boot(
	ctx context.Context, now time.Time, head gridsite.Head, site corral.Site, claim gridsite.Claim,
) error {
	open := func() (io.ReadCloser, error) {
		p, _, err := d.catalog.of(ctx, site.PackageDigest)
		if err != nil {
			return nil, err
		}
		if missing, err := d.ensure(ctx, now, p); missing != nil || err != nil {
			return nil, errors.Join(missing, err)
		}
		return d.catalog.depot.binary(p.Package)
	}
	return hopelessly(head.Boot(ctx, BootProgram(site), claim, open))
}

// Package performs corrald's part of bringing the package with a digest to the site and returns the order for the
// setup job that does the rest. While the job prunes the site's cache, it keeps the packages whose digests are in keep.
// The error is Hopeless if the package cannot be brought there.
func (d *Delivery) Package(
	ctx context.Context, now time.Time, head gridsite.Head, digest string, keep []string,
) (*jobfiles.Setup, error) {
	p, mirrors, err := d.catalog.of(ctx, digest)
	if corral.KindOf(err) == corral.NotFound {
		return nil, Hopeless("the package was removed from the catalog: " + err.Error())
	}
	if err != nil {
		return nil, err
	}
	fetched, err := d.fetchable(p, mirrors, now)
	if err != nil {
		return nil, err
	}
	sources, err := d.bring(ctx, now, head, p, fetched)
	if err != nil {
		return nil, err
	}
	o := &jobfiles.Setup{
		Package: p.Name, What: p.What, Version: p.Version, Platform: p.Platform, Digest: p.Digest,
		SizeBytes: p.SizeBytes, Key: string(p.Key), Signature: p.Signature, Sources: sources,
		CacheBytes: d.supply.CacheBytes,
	}
	slices.Sort(keep)
	o.Keep = slices.DeleteFunc(slices.Compact(keep), func(k string) bool { return k == "" || k == digest })
	for _, k := range d.catalog.depot.trusted {
		o.Trusted = append(o.Trusted, string(k))
	}
	return o, nil
}

// fetchable lists the sources from which a setup job can fetch a package, best first: mirrors with supported URL
// schemes, and finally corrald itself, whose own mirror serves all sites.
func (d *Delivery) fetchable(p packages.Signed, mirrors []corral.Mirror, now time.Time) ([]jobfiles.Source, error) {
	sources, err := mirrorSources(p, mirrors, now)
	if err != nil {
		return nil, err
	}
	sources = slices.DeleteFunc(sources, func(s jobfiles.Source) bool {
		u, err := url.Parse(s.URL)
		return err != nil || u.Scheme == "ftp" || u.Scheme == "sftp"
	})
	if d.supply.ServedAt != "" {
		own, err := staging.URLBelow(d.supply.ServedAt, p.Package)
		if err != nil {
			return nil, err
		}
		sources = append(sources, jobfiles.Source{URL: own})
	}
	return sources, nil
}

// bring chooses how a package gets to the site, records the choice in the site's history, and pushes the package if
// that was chosen. It returns the sources for the setup job.
func (d *Delivery) bring(
	ctx context.Context, now time.Time, head gridsite.Head, p packages.Signed, fetched []jobfiles.Source,
) ([]jobfiles.Source, error) {
	missing, err := d.ensure(ctx, now, p)
	if err != nil {
		return nil, err
	}
	archive, err := d.catalog.depot.mirror.Path(p.Package)
	if err != nil {
		return nil, err
	}
	visible, err := head.Sees(ctx, archive)
	if err != nil {
		return nil, err
	}
	way, why := d.supply.Way.choose(opening{
		visible: missing == nil && visible, fetchable: len(fetched) > 0, unreached: d.unreached,
	})
	err = d.write(ctx, func(tx *store.Tx) error {
		return tx.Log(corral.ObjectSite, int64(d.site), "supply",
			fmt.Sprintf("package %s is delivered by %s: %s", p.Name, way, why))
	})
	switch {
	case err != nil:
		return nil, err
	case way == WayLocal:
		return []jobfiles.Source{{URL: (&url.URL{Scheme: "file", Path: archive}).String()}}, nil
	case way == WayMirrors:
		return fetched, nil
	case missing != nil:
		return nil, Hopeless("package " + p.Name + " cannot be pushed: " + missing.Error())
	}
	return push(ctx, head, p, archive)
}

// push sends the archive through the transport to the place where the setup job expects it, unless the package is
// already installed. The manifest is the last file of an installation, so its presence shows that the installation is
// complete.
func push(ctx context.Context, head gridsite.Head, p packages.Signed, archive string) ([]jobfiles.Source, error) {
	incoming, err := staging.Incoming("", p.Package)
	if err != nil {
		return nil, err
	}
	dir, err := staging.Dir("", p.Package)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return os.Open(archive) }
	at, err := head.Push(ctx, incoming, path.Join(dir, packages.ManifestName), open)
	if err != nil {
		return nil, hopelessly(fmt.Errorf("pushing package %s: %w", p.Name, err))
	}
	return []jobfiles.Source{{URL: at}}, nil
}

// ensure fetches the archive if corrald has lost it, and records the mirrors' results. The first result is the error if
// no mirror provided the archive, because another way of delivery may not need it; the second is a local failure.
func (d *Delivery) ensure(ctx context.Context, now time.Time, p packages.Signed) (missing, err error) {
	tries, missing := d.catalog.ensure(ctx, p, now)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return missing, d.write(ctx, func(tx *store.Tx) error { return d.record(tx, "corrald asked ", tries) })
}

// Limits on the lines of a site's report that are written to the history.
const (
	MaxLines     = 64
	MaxLineBytes = 600
)

// record writes the mirrors' results into the site's history and adds them to the mirrors' health. A site's report is
// truncated, and trusted only about known mirrors: at worst a site can cause a good mirror to be tried last.
func (d *Delivery) record(tx *store.Tx, asked string, tries []jobfiles.Try) error {
	for i, t := range tries[:min(len(tries), MaxLines)] {
		verdict := "failed"
		if t.OK {
			verdict = "worked"
		}
		line := strings.ToValidUTF8(t.Line[:min(len(t.Line), MaxLineBytes)], "?")
		reason := fmt.Sprintf("%ssource %d of %d, which %s: %s", asked, i+1, len(tries), verdict, line)
		if err := tx.Log(corral.ObjectSite, int64(d.site), "fetch", reason); err != nil {
			return err
		}
		if t.Mirror == 0 {
			continue
		}
		err := tx.MeasureMirror(t.Mirror, t.OK, max(t.Bytes, 0), time.Duration(t.Took))
		if err != nil && corral.KindOf(err) != corral.NotFound { // the site named it, corrald did not
			return err
		}
	}
	return nil
}

// Reported records the results of the sources that a setup job tried, in the transaction that records the job's end.
func (d *Delivery) Reported(tx *store.Tx, tries []jobfiles.Try) error {
	return d.record(tx, "the setup job asked ", tries)
}

// Learn remembers, after the results are recorded, whether any mirror answered at the site: if none did, the next
// package is pushed. The information is lost when corrald restarts and is reported again by the next setup job.
func (d *Delivery) Learn(tries []jobfiles.Try) {
	if len(tries) > 0 {
		d.unreached = !slices.ContainsFunc(tries, func(t jobfiles.Try) bool { return t.Reached })
	}
}

// A Way is a method of bringing a package to a site.
type Way string

// The ways. WayAuto chooses the first one available: the site sees corrald's own mirror as a directory; it fetches
// from mirrors; corrald pushes the archive through the site's transport.
const (
	WayAuto    Way = "auto"
	WayLocal   Way = "local"
	WayMirrors Way = "mirrors"
	WayPush    Way = "push"
)

// Ways lists the values that can be requested.
var Ways = []Way{WayAuto, WayLocal, WayMirrors, WayPush}

// A Supply configures how packages get to sites. The zero value chooses the way automatically and serves no mirror.
type Supply struct {
	Way        Way
	CacheBytes int64  // limit on the packages at a site; 0: no limit
	ServedAt   string // URL of corrald's own mirror; "": it is not served
}

// An opening describes which ways to a site are available.
type opening struct {
	visible   bool // the site sees the archive in corrald's mirror
	fetchable bool // there are mirrors that the setup job can use
	unreached bool // an earlier setup job tried some mirrors, and none answered
}

// choose selects the cheapest way that can work. A file on the same disk costs nothing; a mirror costs corrald
// nothing; a push uses corrald's connection to each site. A site that no mirror answered is assumed to have no web
// access until a setup job there reaches one. why completes "package NAME: ".
func (w Way) choose(o opening) (way Way, why string) {
	switch {
	case w != WayAuto && w != "":
		return w, "as corrald was configured"
	case o.visible:
		return WayLocal, "the site sees corrald's mirror as a directory"
	case o.fetchable && !o.unreached:
		return WayMirrors, "the site cannot see corrald's mirror as a directory"
	case o.unreached:
		return WayPush, "no mirror answered to the site"
	}
	return WayPush, "the site has no mirror to fetch it from"
}

// ensure makes sure that corrald's own mirror has the package's archive and fetches it from another mirror if
// necessary. The tries are in the order of the mirrors' ranks (corral.RankMirrors): by their expected rate of useful
// bytes, estimated from earlier measurements.
func (c *Catalog) ensure(ctx context.Context, s packages.Signed, now time.Time) ([]jobfiles.Try, error) {
	if c.depot.mirror.Has(s.Package) {
		return nil, nil
	}
	_, mirrors, err := c.of(ctx, s.Digest)
	if err != nil {
		return nil, err
	}
	sources, err := mirrorSources(s, mirrors, now)
	if err != nil {
		return nil, err
	}
	var urls []string
	for _, src := range sources {
		urls = append(urls, src.URL)
	}
	tries, err := c.download(ctx, s, urls)
	var told []jobfiles.Try
	for i, t := range tries {
		told = append(told, jobfiles.Try{
			Mirror: sources[i].Mirror, OK: t.Reason == "", Reached: t.Reached, Bytes: t.Bytes,
			Took: corral.Seconds(t.Took), Line: t.String(),
		})
	}
	return told, err
}

// mirrorSources lists the mirrors' sources of a package, best first.
func mirrorSources(s packages.Signed, mirrors []corral.Mirror, now time.Time) ([]jobfiles.Source, error) {
	var sources []jobfiles.Source
	for _, m := range corral.RankMirrors(mirrors, now) {
		at, err := staging.URLBelow(m.URL, s.Package)
		if err != nil {
			return nil, err
		}
		sources = append(sources, jobfiles.Source{Mirror: m.ID, URL: at})
	}
	return sources, nil
}
