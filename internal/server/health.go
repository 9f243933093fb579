package server

import (
	_ "embed"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

//go:embed openapi.yaml
var openAPI []byte

func (s *Server) health() api.Health {
	return api.Health{Status: "ok", Version: s.cfg.Version, User: s.cfg.User}
}

// healthz says that the process answers at all.
func (s *Server) healthz(c echo.Context) error {
	if q := queryOf(c); q.err != nil {
		return q.err
	}
	return c.JSON(http.StatusOK, s.health())
}

// readyz says that requests will be served: the database answers and nobody has asked to stop.
func (s *Server) readyz(c echo.Context) error {
	select {
	case <-s.stopping:
		return errStopping
	default:
	}
	err := s.db.View(c.Request().Context(), func(tx *store.Tx) error {
		_, err := tx.Sites(store.Filter{Page: store.Page{Limit: 1}})
		return err
	})
	if err != nil {
		return err
	}
	return s.healthz(c)
}

func (s *Server) openapi(c echo.Context) error {
	if q := queryOf(c); q.err != nil {
		return q.err
	}
	return c.Blob(http.StatusOK, "application/yaml", openAPI)
}
