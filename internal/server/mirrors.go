package server

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

func (s *Server) listMirrors(c echo.Context) error {
	q := queryOf(c, "all", "after", "limit")
	f := q.filter()
	if q.err != nil {
		return q.err
	}
	return read(s, c, func(tx *store.Tx) (api.List[corral.Mirror], error) {
		mirrors, err := tx.Mirrors(store.Filter{All: f.All, Page: oneMore(f.Page)})
		return listOf(mirrors, f.Limit, func(m corral.Mirror) int64 { return int64(m.ID) }), err
	})
}

// mirrorURL refuses what is no mirror's directory.
func (k *checker) mirrorURL(place, raw string) {
	u, err := url.Parse(raw)
	if err != nil {
		k.invalid(true, place, "it is not a URL") // its text may hold a password
		return
	}
	isFile := u.Scheme == "file"
	k.invalid(!slices.Contains([]string{"http", "https", "ftp", "sftp", "file"}, u.Scheme), place, "the scheme is none of http, https, ftp, sftp, file")
	k.invalid(!isFile && u.Hostname() == "", place, "it names no host")
	k.invalid(isFile && (u.Host != "" || !path.IsAbs(u.Path)), place, "a file URL has an absolute path and no host: file:///DIR")
	k.invalid(u.RawQuery != "" || u.Fragment != "", place, "a mirror's directory has neither query nor fragment")
	_, password := u.User.Password()
	k.invalid(password, place, "a password would be shown to everybody who lists mirrors")
}

func (s *Server) addMirror(c echo.Context) error {
	return change(s, c, http.StatusCreated, func(ctx context.Context, in api.NewMirror) (step[corral.Mirror], error) {
		var k checker
		k.name("name", in.Name)
		k.mirrorURL("url", in.URL)
		if k.err != nil {
			return step[corral.Mirror]{}, k.err
		}
		m := corral.Mirror{Name: in.Name, URL: in.URL, Owner: actor(c)}
		offer, problem := s.cfg.Catalog.Check(ctx, m)
		return only(func(tx *store.Tx) (corral.Mirror, error) {
			m, err := tx.CreateMirror(m)
			if err != nil {
				return m, placed(corral.Conflict, "name", err)
			}
			return checked(c, tx, m, offer, problem)
		})
	})
}

// checked records a look at a mirror. What it offers that the catalog lacks is in it from now on.
func checked(c echo.Context, tx *store.Tx, m corral.Mirror, offer []corral.Package, problem error) (corral.Mirror, error) {
	if problem != nil {
		return tx.CheckMirror(m.ID, nil, problem.Error())
	}
	var has []corral.PackageID
	for _, p := range offer {
		known, err := tx.PackageOf(p.Digest)
		if corral.KindOf(err) == corral.NotFound {
			p.Owner = actor(c)
			known, err = tx.CreatePackage(p)
		}
		if err != nil {
			return m, err
		}
		has = append(has, known.ID)
	}
	return tx.CheckMirror(m.ID, has, "")
}

func (s *Server) checkMirror(c echo.Context) error {
	if q := queryOf(c); q.err != nil {
		return q.err
	}
	return change(s, c, http.StatusOK, func(ctx context.Context, _ none) (step[corral.Mirror], error) {
		var m corral.Mirror
		err := s.db.View(ctx, func(tx *store.Tx) (err error) {
			m, err = theMirror(c, tx)
			return err
		})
		if err != nil {
			return step[corral.Mirror]{}, err
		}
		offer, problem := s.cfg.Catalog.Check(ctx, m)
		return only(func(tx *store.Tx) (corral.Mirror, error) {
			m, err := theMirror(c, tx)
			if err == nil && m.State == corral.MirrorDeleted {
				err = corral.ErrorAt(corral.Conflict, "mirror", "mirror %s is %s", m.Name, m.State)
			}
			if err != nil {
				return m, err
			}
			return checked(c, tx, m, offer, problem)
		})
	})
}

// theMirror finds the mirror that the path names, by name or id.
func theMirror(c echo.Context, tx *store.Tx) (corral.Mirror, error) {
	ref := pathParam(c, "mirror")
	if !digits.MatchString(ref) {
		m, err := tx.MirrorNamed(ref)
		return m, missing("mirror", err)
	}
	id, err := strconv.ParseInt(ref, 10, 64)
	if err != nil {
		return corral.Mirror{}, corral.ErrorAt(corral.NotFound, "mirror", "%s is not an id", ref)
	}
	m, err := tx.Mirror(corral.MirrorID(id))
	return m, missing("mirror", err)
}

func (s *Server) getMirror(c echo.Context) error {
	if q := queryOf(c); q.err != nil {
		return q.err
	}
	return read(s, c, func(tx *store.Tx) (corral.Mirror, error) { return theMirror(c, tx) })
}

func (s *Server) removeMirror(c echo.Context) error {
	if q := queryOf(c); q.err != nil {
		return q.err
	}
	return change(s, c, http.StatusOK, func(context.Context, none) (step[corral.Mirror], error) {
		return only(func(tx *store.Tx) (corral.Mirror, error) {
			m, err := theMirror(c, tx)
			if err != nil || m.State == corral.MirrorDeleted {
				return m, err
			}
			return tx.DeleteMirror(m.ID, "removal was asked for")
		})
	})
}

func (s *Server) mirrorHistory(c echo.Context) error {
	return s.history(c, func(tx *store.Tx) ([]subject, error) {
		m, err := theMirror(c, tx)
		return []subject{{corral.ObjectMirror, int64(m.ID)}}, err
	})
}
