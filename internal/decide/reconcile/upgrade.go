package reconcile

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
)

// An upgraded corrald installs its own build of the pilot at each READY site. The site remains READY in the meantime:
// working or waiting pilots continue with the build that they were ordered to use, which remains in place. New attempts
// wait for the new build, because an older build may not support corrald's worker protocol. If the new build cannot be
// installed, new attempts use the old build: it may still work, and a site that fails would lose all its pilots.

// A Package is a worker package of the catalog.
type Package struct {
	Name   string // full name
	Digest string // sha256:HEX of its archive
}

// upgrade decides about a newer package for a READY site without a current setup job.
func upgrade(now time.Time, w *World) []Action {
	if w.Installed.Newer.Digest == "" {
		return nil
	}
	tries, done := w.stagings(&corral.Glidein{}, w.Installed.Newer.Digest)
	switch {
	case done:
		return []Action{UsePackage{w.Installed.Newer}}
	case exhausted(tries), len(tries) > 0 && now.Before(retryAt(now, len(tries), tries[len(tries)-1])):
		return nil
	}
	why := "the site needs package " + w.Installed.Newer.Name
	return []Action{Submit{Kind: corral.SetupJob, Package: w.Installed.Newer.Digest, Reason: why}}
}

// lacksUpgrade returns the reason why attempts must wait until the newer package is installed at the site.
func lacksUpgrade(w *World) corral.Lack {
	if w.Installed.Newer.Digest == "" || w.Site.State != corral.SiteReady {
		return corral.Lack{}
	}
	if tries, _ := w.stagings(&corral.Glidein{}, w.Installed.Newer.Digest); exhausted(tries) {
		return corral.Lack{}
	}
	return corral.Lack{Why: fmt.Sprintf("site %s gets package %s first", w.Site.Name, w.Installed.Newer.Name)}
}

// upgradeTime returns the time when the setup job for a newer package may be retried, or zero if it may not.
func upgradeTime(now time.Time, w *World) (at time.Time) {
	if w.Installed.Newer.Digest == "" {
		return at
	}
	if tries, _ := w.stagings(&corral.Glidein{}, w.Installed.Newer.Digest); len(tries) > 0 {
		at = retryAt(now, len(tries), tries[len(tries)-1])
	}
	return at
}

// SetupSite returns the site as it appears to a setup job that installs the package with the given digest, which is
// empty for the site's own package: the pilot of the newer package installs itself, because an older pilot may not
// understand the order.
func SetupSite(w World, digest string) corral.Site {
	site := w.Site
	if digest != "" && digest == w.Installed.Newer.Digest {
		site.Package, site.PackageDigest = w.Installed.Newer.Name, w.Installed.Newer.Digest
	}
	return site
}

func (a UsePackage) apply(w *World, _ time.Time) ([]corral.Entry, error) {
	w.Site.Install(w.Site.Platform, a.Package.Name, a.Package.Digest)
	w.Installed.Newer = Package{}
	return []corral.Entry{{Object: corral.ObjectSite, Of: int64(w.Site.ID), Event: "package",
		From: string(w.Site.State), To: string(w.Site.State), Reason: a.Why()}}, nil
}
