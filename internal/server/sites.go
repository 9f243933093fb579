package server

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

func (s *Server) listSites(c echo.Context) error {
	q := queryOf(c, "all", "after", "limit")
	f := q.filter()
	if q.err != nil {
		return q.err
	}
	return read(s, c, func(tx *store.Tx) (api.List[corral.Site], error) {
		sites, err := tx.Sites(store.Filter{All: f.All, Page: oneMore(f.Page)})
		for i := range sites {
			if err == nil {
				sites[i], err = withAvoided(tx, sites[i])
			}
		}
		return listOf(sites, f.Limit, func(s corral.Site) int64 { return int64(s.ID) }), err
	})
}

// rootIsFree refuses a root in or around that of another site: a cleanup job removes all of its own.
func rootIsFree(tx *store.Tx, site corral.Site) error {
	others, err := tx.Sites(store.Filter{})
	if err != nil {
		return err
	}
	for _, o := range others {
		if o.Contact == site.Contact && o.Name != site.Name && (within(o.Root, site.Root) || within(site.Root, o.Root)) {
			return corral.ErrorAt(corral.Conflict, "root", "%s and the root %s of site %s would hold one another", site.Root, o.Root, o.Name)
		}
	}
	return nil
}

// within reports whether path is dir or below it; both are clean.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}

// siteNamed finds a site by name or id.
func siteNamed(tx *store.Tx, place, ref string) (corral.Site, error) {
	if !digits.MatchString(ref) {
		site, err := tx.SiteNamed(ref)
		return site, missing(place, err)
	}
	id, err := strconv.ParseInt(ref, 10, 64)
	if err != nil {
		return corral.Site{}, corral.ErrorAt(corral.NotFound, place, "%s is not an id", ref)
	}
	site, err := tx.Site(corral.SiteID(id))
	return site, missing(place, err)
}

// siteID finds the id of the site that a parameter names.
func siteID(tx *store.Tx) func(ref string) (corral.SiteID, error) {
	return func(ref string) (corral.SiteID, error) {
		site, err := siteNamed(tx, "site", ref)
		return site.ID, err
	}
}

// theSite finds the site that the path names.
func theSite(c echo.Context, tx *store.Tx) (corral.Site, error) {
	return siteNamed(tx, "site", pathParam(c, "site"))
}

// siteOnRecord finds the site that the path names for who only looks: where no site has that name any more, the last one
// that had it.
func siteOnRecord(c echo.Context, tx *store.Tx) (corral.Site, error) {
	ref := pathParam(c, "site")
	if digits.MatchString(ref) {
		return siteNamed(tx, "site", ref)
	}
	site, err := tx.SiteLastNamed(ref)
	return site, missing("site", err)
}

func (s *Server) getSite(c echo.Context) error {
	return answerOrWait(s, c, target[corral.Site]{
		load: func(tx *store.Tx) (corral.Site, error) {
			site, err := siteOnRecord(c, tx)
			if err != nil {
				return site, err
			}
			return withAvoided(tx, site)
		},
		about: func(s corral.Site) store.Subject { return store.Subject{Object: corral.ObjectSite, ID: int64(s.ID)} },
		until: func(list string) (func(corral.Site) api.Progress, error) {
			u, err := api.ParseUntil(list, corral.SiteStates)
			return u.Site, err
		},
	})
}

func (s *Server) removeSite(c echo.Context) error {
	q := queryOf(c, "force")
	force := q.flag("force")
	if q.err != nil {
		return q.err
	}
	return change(s, c, http.StatusOK, func(context.Context, none) (step[corral.Site], error) {
		return only(func(tx *store.Tx) (corral.Site, error) {
			site, err := theSite(c, tx)
			if err != nil {
				return site, err
			}
			return removeSite(tx, site, force)
		})
	})
}

// removeSite asks for the site's removal, or forgets it. What is on its way already is left alone.
func removeSite(tx *store.Tx, site corral.Site, force bool) (corral.Site, error) {
	switch {
	case site.State == corral.SiteDeleted:
		return site, nil
	case force:
		return forgetSite(tx, site)
	case site.State == corral.SiteExiting || site.State == corral.SiteRemoving:
		return site, nil
	}
	return tx.MoveSite(site.ID, corral.SiteRemove, "removal was asked for")
}

// forgetSite deletes the record; the site's glideins are asked to go, as far as they still hear it.
func forgetSite(tx *store.Tx, site corral.Site) (corral.Site, error) {
	const reason = "the site was removed by force"
	glideins, err := tx.Glideins(store.GlideinFilter{Site: site.ID, Live: true})
	if err != nil {
		return site, err
	}
	for _, g := range glideins {
		if _, err := tx.AskGlidein(g.ID, corral.AskCancel, reason); err != nil {
			return site, err
		}
	}
	return tx.MoveSite(site.ID, corral.SiteForget, "removed by force; what the site keeps stays there")
}
