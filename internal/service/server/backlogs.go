package server

import (
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
)

// backlogHandlers answer requests about the queues of sites.
type backlogHandlers struct {
	rest.Resource[corral.Site]
	reach *siteaccess.Reach
}

// newBacklogs returns handlers that use r to connect to the sites found by the resource.
func newBacklogs(r *siteaccess.Reach, of rest.Resource[corral.Site]) *backlogHandlers {
	return &backlogHandlers{Resource: of, reach: r}
}

// routes returns the routes below a site.
func (h *backlogHandlers) routes() []rest.Route {
	return []rest.Route{rest.Get("/v1/sites/:site/backlog", h.show, "queue")}
}

// show answers with the present queue from the site's batch system: the one in the query or, by default, the site's
// own.
func (h *backlogHandlers) show(c *rest.Call) error {
	name := c.Query.Word("queue")
	if err := c.Query.Err(); err != nil {
		return err
	}
	site, err := h.Load(c.Context(), c)
	if err != nil {
		return err
	}
	if site.State == corral.SiteDeleted {
		return corral.ErrorAt(corral.Conflict, "site", "%s is %s", site.Name, site.State)
	}
	seen, err := rest.Until(c.Context(), h.Adapter, func(ctx context.Context) (corral.Backlog, error) {
		return siteaccess.Queues{Reach: h.reach}.Backlog(ctx, site, name)
	})
	if err != nil {
		return err
	}
	return c.JSON(seen)
}
