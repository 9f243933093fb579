package server

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

// maxForgiven is how many nodes may be named at once.
const maxForgiven = 1000

func (s *Server) forgiveNodes(c echo.Context) error {
	return change(s, c, http.StatusOK, func(_ context.Context, in api.NewForgiveness) (step[corral.Site], error) {
		var k checker
		k.invalid(len(in.Nodes) > maxForgiven, "nodes", "%d are more than %d", len(in.Nodes), maxForgiven)
		if k.err != nil {
			return step[corral.Site]{}, k.err
		}
		return only(func(tx *store.Tx) (corral.Site, error) {
			site, err := theSite(c, tx)
			if err == nil {
				err = settable(site)
			}
			if err == nil {
				err = missing("nodes", tx.ForgiveNodes(site.ID, in.Nodes...))
			}
			if err != nil {
				return site, err
			}
			return withAvoided(tx, site)
		})
	})
}

// withAvoided is the site with the nodes that the next attempt there avoids.
func withAvoided(tx *store.Tx, site corral.Site) (corral.Site, error) {
	if site.State.Terminal() {
		return site, nil
	}
	var err error
	site.Avoided, err = tx.BadNodes(site, "", 1)
	return site, err
}
