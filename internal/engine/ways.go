package engine

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/order"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/packages"
	"github.com/corral-pilot/corral/staging"
)

// A Way is how a package gets to a site.
type Way string

// The ways, of which auto takes the first that is open: the site sees corrald's own mirror as a
// directory; it fetches from mirrors; corrald pushes the archive through the site's transport.
const (
	WayAuto    Way = "auto"
	WayLocal   Way = "local"
	WayMirrors Way = "mirrors"
	WayPush    Way = "push"
)

// Ways lists what may be asked for.
var Ways = []Way{WayAuto, WayLocal, WayMirrors, WayPush}

// A Supply says how packages get to sites. The zero value chooses the way, and has the defaults of
// package staging.
type Supply struct {
	Way        Way
	Pace       staging.Pace // what a mirror must keep up
	CacheBytes int64        // of packages at a site; 0: no limit
	ServedAt   string       // URL under which corrald's own mirror is served; "": it is not
}

// An opening is what is known about the ways to one site.
type opening struct {
	visible   bool // the site sees the archive in corrald's mirror
	fetchable bool // there are mirrors that the setup job can ask
	unreached bool // it asked some before, and none answered
}

// choose is the rule. why completes "package NAME: ".
func (w Way) choose(o opening) (way Way, why string) {
	switch {
	case w != WayAuto && w != "":
		return w, "as corrald was told to"
	case o.visible:
		return WayLocal, "the site sees corrald's mirror as a directory"
	case o.fetchable && !o.unreached:
		return WayMirrors, "the site does not see corrald's mirror as a directory"
	case o.unreached:
		return WayPush, "no mirror answered to the site"
	}
	return WayPush, "there is no mirror that the site could ask"
}

// ensure has the package's archive in corrald's own mirror, and fetches it from any mirror if it is
// not. The tries are in the order of the mirrors' ranks.
func (c *Catalog) ensure(ctx context.Context, s packages.Signed) ([]order.Try, error) {
	if c.depot.mirror.Has(s.Package) {
		return nil, nil
	}
	var mirrors []corral.Mirror
	err := c.db.View(ctx, func(tx *store.Tx) error {
		p, err := tx.PackageOf(s.Digest)
		if err == nil {
			mirrors, err = tx.MirrorsOf(p.ID)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking for mirrors: %w", err)
	}
	sources, err := mirrorSources(s, mirrors)
	if err != nil {
		return nil, err
	}
	var urls []string
	for _, src := range sources {
		urls = append(urls, src.URL)
	}
	tries, err := c.download(ctx, s, urls)
	var told []order.Try
	for i, t := range tries {
		told = append(told, order.Try{Mirror: sources[i].Mirror, OK: t.Reason == "", Reached: t.Reached,
			Bytes: t.Bytes, Took: corral.Seconds(t.Took), Line: t.String()})
	}
	return told, err
}

// mirrorSources lists where mirrors have a package, the best first.
func mirrorSources(s packages.Signed, mirrors []corral.Mirror) ([]order.Source, error) {
	var sources []order.Source
	for _, m := range corral.RankMirrors(mirrors, time.Now()) {
		at, err := staging.URLBelow(m.URL, s.Package)
		if err != nil {
			return nil, err
		}
		sources = append(sources, order.Source{Mirror: m.ID, URL: at})
	}
	return sources, nil
}

// forSite leaves out what a setup job does not speak.
func forSite(sources []order.Source) []order.Source {
	var some []order.Source
	for _, s := range sources {
		if u, err := url.Parse(s.URL); err == nil && u.Scheme != "ftp" && u.Scheme != "sftp" {
			some = append(some, s)
		}
	}
	return some
}

// supply chooses the way of a package to the site, does corrald's part of it, and returns what the
// setup job is to try. The choice is written to the site's history.
func (l *siteLoop) supply(ctx context.Context, s packages.Signed, mirrors []corral.Mirror) ([]order.Source, error) {
	all, err := mirrorSources(s, mirrors)
	if err != nil {
		return nil, err
	}
	fetched := forSite(all)
	if l.e.cfg.Supply.ServedAt != "" {
		own, err := staging.URLBelow(l.e.cfg.Supply.ServedAt, s.Package)
		if err != nil {
			return nil, err
		}
		fetched = append(fetched, order.Source{URL: own})
	}
	here, err := l.ensure(ctx, s)
	if err != nil {
		return nil, err
	}
	archive, err := l.e.catalog.depot.mirror.Path(s.Package)
	if err != nil {
		return nil, err
	}
	visible, err := l.access.Head.Sees(ctx, archive)
	if err != nil {
		return nil, err
	}
	way, why := l.e.cfg.Supply.Way.choose(opening{visible: here == nil && visible, fetchable: len(fetched) > 0, unreached: l.unreached})
	if err := l.note(ctx, "supply", fmt.Sprintf("package %s goes by way of %s: %s", s.Name, way, why)); err != nil {
		return nil, err
	}
	switch way {
	case WayLocal:
		return []order.Source{{URL: (&url.URL{Scheme: "file", Path: archive}).String()}}, nil
	case WayMirrors:
		return fetched, nil
	}
	if here != nil {
		return nil, hopeless("package " + s.Name + " cannot be pushed: " + here.Error())
	}
	return l.push(ctx, s, archive)
}

// ensure fetches the archive if corrald has lost it. What the mirrors did is written down; that none
// gave it is the first result, about ourselves is the error.
func (l *siteLoop) ensure(ctx context.Context, s packages.Signed) (missing, err error) {
	tries, missing := l.e.catalog.ensure(ctx, s)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return missing, l.write(ctx, func(tx *store.Tx) error { return l.recordTries(tx, "corrald asked ", tries) })
}

// push sends the archive through the transport, to where the setup job takes it from, unless the
// package is installed there.
func (l *siteLoop) push(ctx context.Context, s packages.Signed, archive string) ([]order.Source, error) {
	incoming, err := staging.Incoming("", s.Package)
	if err != nil {
		return nil, err
	}
	dir, err := staging.Dir("", s.Package)
	if err != nil {
		return nil, err
	}
	at, err := l.access.Head.Push(ctx, incoming, path.Join(dir, packages.ManifestName), func() (io.ReadCloser, error) { return os.Open(archive) })
	if err != nil {
		return nil, hopelessly(fmt.Errorf("pushing package %s: %w", s.Name, err))
	}
	return []order.Source{{URL: at}}, nil
}

// note writes a line into the site's history.
func (l *siteLoop) note(ctx context.Context, event, reason string) error {
	return l.write(ctx, func(tx *store.Tx) error { return tx.Log(corral.ObjectSite, int64(l.id), event, reason) })
}

// Bounds of what a site's report may put into the history.
const (
	maxTries    = 64
	maxTryBytes = 600
)

// recordTries writes what mirrors did into the site's history, and adds it to their health.
func (l *siteLoop) recordTries(tx *store.Tx, who string, tries []order.Try) error {
	for i, t := range tries[:min(len(tries), maxTries)] {
		verdict := "failed"
		if t.OK {
			verdict = "worked"
		}
		line := strings.ToValidUTF8(t.Line[:min(len(t.Line), maxTryBytes)], "?")
		reason := fmt.Sprintf("%ssource %d of %d, which %s: %s", who, i+1, len(tries), verdict, line)
		if err := tx.Log(corral.ObjectSite, int64(l.id), "fetch", reason); err != nil {
			return err
		}
		if t.Mirror == 0 {
			continue
		}
		err := tx.MeasureMirror(t.Mirror, t.OK, max(t.Bytes, 0), time.Duration(t.Took))
		if err != nil && corral.KindOf(err) != corral.NotFound { // the site said so, we never asked it
			return err
		}
	}
	return nil
}

// reportedTries records the tries of a setup job's report along with the end of the job.
func (l *siteLoop) reportedTries(tx *store.Tx, job corral.Job) error {
	r, ok := l.reports[job.Tag]
	if !ok || job.Kind != corral.SetupJob {
		return nil
	}
	return l.recordTries(tx, "the setup job asked ", r.Tries)
}

// learn notes what the report of a job that has ended says of its site: whether any mirror answered there, for the
// choice of the next way, and whether a package is missing. A corrald that ends forgets it; the next pilot says it again.
func (l *siteLoop) learn(job corral.Job) {
	r, ok := l.reports[job.Tag]
	delete(l.reports, job.Tag)
	switch {
	case !ok:
	case job.Kind == corral.PilotJob && r.Missing != "":
		l.missed[r.Missing] = job.StartedAt
		if job.StartedAt.IsZero() {
			l.missed[r.Missing] = job.EndedAt
		}
	case job.Kind == corral.SetupJob && len(r.Tries) > 0:
		l.unreached = !slices.ContainsFunc(r.Tries, func(t order.Try) bool { return t.Reached })
	}
}
