package server

import (
	"time"

	"github.com/labstack/echo/v4"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/store"
)

// maxWaits is how many attempts, the last ones, say how long a site lets one wait.
const maxWaits = 10_000

func (s *Server) siteWaits(c echo.Context) error {
	if q := queryOf(c); q.err != nil {
		return q.err
	}
	return read(s, c, func(tx *store.Tx) (api.List[corral.WaitStats], error) {
		site, err := siteOnRecord(c, tx)
		if err != nil {
			return api.List[corral.WaitStats]{}, err
		}
		waits, err := tx.Waits(store.WaitFilter{Name: site.Name, Last: maxWaits})
		return whole(corral.WaitQuantiles(waits, time.Now()), ""), err
	})
}
