package server

import (
	_ "embed"
	"net/http"

	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
)

//go:embed openapi.yaml
var openAPI []byte

// healthHandlers answer requests about corrald itself, from supervisors such as systemd as well as from people.
type healthHandlers struct {
	*rest.Adapter
	health  api.Health
	metrics http.Handler
}

func newHealth(a *rest.Adapter, cfg Config) *healthHandlers {
	return &healthHandlers{a, api.Health{Status: "ok", Version: cfg.Version, User: cfg.User}, cfg.Metrics.Handler()}
}

func (h *healthHandlers) routes() []rest.Route {
	return []rest.Route{
		rest.Get("/healthz", h.alive),
		rest.Get("/readyz", h.ready),
		rest.Get("/openapi.yaml", h.openapi),
		rest.Get("/metrics", func(c *rest.Call) error { return c.Pass(h.metrics) }),
	}
}

// alive says that the process answers at all.
func (h *healthHandlers) alive(c *rest.Call) error { return c.JSON(h.health) }

// ready says that requests will be served: the database answers, and corrald has not been asked to stop.
func (h *healthHandlers) ready(c *rest.Call) error {
	if h.Life.Err() != nil {
		return rest.ErrStopping
	}
	return rest.Read(h.Adapter, c, func(tx *store.Tx) (api.Health, error) {
		_, err := tx.Sites(store.Filter{Page: store.Page{Limit: 1}})
		return h.health, err
	})
}

// openapi answers with the contract in a form for machines. A test holds the routes to it.
func (h *healthHandlers) openapi(c *rest.Call) error {
	return c.Document("application/yaml", openAPI)
}
