package depot

import (
	"context"
	"net/url"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/order"
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

// A Supply says how packages get to sites. The zero value chooses the way, and serves no mirror.
type Supply struct {
	Way        Way
	CacheBytes int64  // of packages at a site; 0: no limit
	ServedAt   string // URL under which corrald's own mirror is served; "": it is not
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
func (c *Catalog) ensure(ctx context.Context, s packages.Signed, now time.Time) ([]order.Try, error) {
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
	var told []order.Try
	for i, t := range tries {
		told = append(told, order.Try{
			Mirror: sources[i].Mirror, OK: t.Reason == "", Reached: t.Reached, Bytes: t.Bytes,
			Took: corral.Seconds(t.Took), Line: t.String(),
		})
	}
	return told, err
}

// mirrorSources lists where mirrors have a package, the best first.
func mirrorSources(s packages.Signed, mirrors []corral.Mirror, now time.Time) ([]order.Source, error) {
	var sources []order.Source
	for _, m := range corral.RankMirrors(mirrors, now) {
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
