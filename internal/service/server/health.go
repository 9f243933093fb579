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

// healthHandlers answer requests about corrald itself, both from people and from supervisors such as systemd.
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

// alive reports that the process answers.
func (h *healthHandlers) alive(c *rest.Call) error { return c.JSON(h.health) }

// ready reports that requests will be served: the database answers, and corrald is not stopping.
func (h *healthHandlers) ready(c *rest.Call) error {
	if h.Life.Err() != nil {
		return rest.ErrStopping
	}
	return rest.Read(h.Adapter, c, func(tx *store.Tx) (api.Health, error) {
		_, err := tx.Sites(store.Filter{Page: store.Page{Limit: 1}})
		return h.health, err
	})
}

// openapi answers with the machine-readable contract. A test compares the routes with it.
func (h *healthHandlers) openapi(c *rest.Call) error {
	return c.Document("application/yaml", openAPI)
}
