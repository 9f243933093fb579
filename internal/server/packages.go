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

func (s *Server) listPackages(c echo.Context) error {
	q := queryOf(c, "all", "after", "limit")
	f := q.filter()
	if q.err != nil {
		return q.err
	}
	return read(s, c, func(tx *store.Tx) (api.List[corral.Package], error) {
		packages, err := tx.Packages(store.Filter{All: f.All, Page: oneMore(f.Page)})
		return listOf(packages, f.Limit, func(p corral.Package) int64 { return int64(p.ID) }), err
	})
}

func (s *Server) importPackage(c echo.Context) error {
	return change(s, c, http.StatusCreated, func(ctx context.Context, in api.NewPackage) (step[corral.Package], error) {
		var k checker
		k.invalid(in.Source == "", "source", "missing")
		k.invalid(in.Sign && in.Signature != nil, "sign", "the package has a signature already")
		if k.err != nil {
			return step[corral.Package]{}, k.err
		}
		var p corral.Package
		err := s.untilStop(ctx, func(ctx context.Context) (err error) {
			p, err = s.cfg.Catalog.Import(ctx, in.Source, in.Signature, in.Sign)
			return err
		})
		if err != nil {
			return step[corral.Package]{}, err
		}
		return only(func(tx *store.Tx) (corral.Package, error) {
			p.Owner = actor(c)
			created, err := tx.CreatePackage(p)
			return created, placed(corral.Conflict, "source", err)
		})
	})
}

// thePackage finds the package that the path names, by id, digest or name.
func thePackage(c echo.Context, tx *store.Tx) (p corral.Package, err error) {
	ref := pathParam(c, "package")
	switch {
	case digits.MatchString(ref):
		id, errID := strconv.ParseInt(ref, 10, 64)
		if errID != nil {
			return p, corral.ErrorAt(corral.NotFound, "package", "%s is not an id", ref)
		}
		p, err = tx.Package(corral.PackageID(id))
	case strings.HasPrefix(ref, "sha256:"):
		p, err = tx.PackageOf(ref)
	default:
		p, err = tx.PackageNamed(ref)
	}
	return p, missing("package", err)
}

func (s *Server) getPackage(c echo.Context) error {
	if q := queryOf(c); q.err != nil {
		return q.err
	}
	return read(s, c, func(tx *store.Tx) (corral.Package, error) { return thePackage(c, tx) })
}

func (s *Server) verifyPackage(c echo.Context) error {
	if q := queryOf(c); q.err != nil {
		return q.err
	}
	return change(s, c, http.StatusOK, func(ctx context.Context, _ none) (step[corral.Package], error) {
		var p corral.Package
		err := s.db.View(ctx, func(tx *store.Tx) (err error) {
			p, err = thePackage(c, tx)
			return err
		})
		if err == nil && p.State == corral.PackageDeleted {
			err = corral.ErrorAt(corral.Conflict, "package", "package %s is %s", p.Name, p.State)
		}
		if err == nil {
			err = s.untilStop(ctx, func(ctx context.Context) error { return s.cfg.Catalog.Verify(ctx, p) })
		}
		if err != nil {
			return step[corral.Package]{}, err
		}
		return only(func(tx *store.Tx) (corral.Package, error) {
			err := tx.Log(corral.ObjectPackage, int64(p.ID), "verify", "the signature and every byte are right")
			return p, err
		})
	})
}

func (s *Server) removePackage(c echo.Context) error {
	if q := queryOf(c); q.err != nil {
		return q.err
	}
	return change(s, c, http.StatusOK, func(context.Context, none) (step[corral.Package], error) {
		return step[corral.Package]{
			write: func(tx *store.Tx) (corral.Package, error) {
				p, err := thePackage(c, tx)
				if err != nil || p.State == corral.PackageDeleted {
					return p, err
				}
				if err := madeOfNothing(tx, p); err != nil {
					return p, err
				}
				return tx.DeletePackage(p.ID, "removal was asked for")
			},
			done: func(p corral.Package) {
				if err := s.cfg.Catalog.Drop(p); err != nil {
					s.lg.Warn("removing a package's archive failed", "package", p.Name, "err", err)
				}
			},
		}, nil
	})
}

// madeOfNothing is a Conflict that names the clusters that are made of the package: they could not be started again.
func madeOfNothing(tx *store.Tx, p corral.Package) error {
	clusters, err := tx.Clusters(store.Filter{})
	if err != nil {
		return err
	}
	var users []string
	for _, k := range clusters {
		if k.HTCondor == p.Name {
			users = append(users, "cluster "+k.Name)
		}
	}
	if len(users) == 0 {
		return nil
	}
	return corral.ErrorAt(corral.Conflict, "package", "%s is what %s is made of: upgrade or remove that first", p.Name, strings.Join(users, ", "))
}

func (s *Server) packageHistory(c echo.Context) error {
	return s.history(c, func(tx *store.Tx) ([]subject, error) {
		p, err := thePackage(c, tx)
		return []subject{{corral.ObjectPackage, int64(p.ID)}}, err
	})
}
