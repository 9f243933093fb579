// Package backlogs answers who holds the processors of a site's queue, and who waits for them.
package backlogs

import (
	"context"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/sites/siteaccess"
)

// Handlers answer requests about the queues of sites.
type Handlers struct {
	rest.Resource[corral.Site]
	reach *siteaccess.Reach
}

// New returns handlers for the sites that the resource finds, which are reached by r.
func New(r *siteaccess.Reach, of rest.Resource[corral.Site]) *Handlers {
	return &Handlers{Resource: of, reach: r}
}

// Routes are those below a site.
func (h *Handlers) Routes() []rest.Route {
	return []rest.Route{rest.Get("/v1/sites/:site/backlog", h.show, "queue")}
}

// show answers with what the site's batch system shows now of the queue that is asked for, or else of the site's own.
func (h *Handlers) show(c *rest.Call) error {
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
	var seen corral.Backlog
	err = h.UntilStop(c.Context(), func(ctx context.Context) (err error) {
		seen, err = siteaccess.Queues{Reach: h.reach}.Backlog(ctx, site, name)
		return err
	})
	if err != nil {
		return err
	}
	return c.JSON(seen)
}
