package server

import (
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/usage"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
)

// usageRoutes returns the route /v1/usage.
func usageRoutes(a *rest.Adapter) []rest.Route {
	return []rest.Route{
		rest.Get("/v1/usage", func(c *rest.Call) error { return answerUsage(a, c) }, "since", "until", "by"),
	}
}

// answerUsage adds up holdings and usage in the time window that the query specifies. Both are read in one view, so
// that no attempt is in only one of them.
func answerUsage(a *rest.Adapter, c *rest.Call) error {
	since, until := c.Query.Time("since"), c.Query.Time("until")
	var by []usage.By
	var names []string
	for _, b := range usage.Bys {
		names = append(names, string(b))
	}
	names = c.Query.Some("by", names...)
	for _, name := range names {
		by = append(by, usage.By(name))
	}
	if err := c.Query.Err(); err != nil {
		return err
	}
	return rest.Read(a, c, func(tx *store.Tx) (api.Usage, error) {
		w := usage.NewWindow(since, until, tx.Now())
		held, err := tx.Holdings(w)
		if err != nil {
			return api.Usage{}, err
		}
		work, err := tx.Work(w)
		if err != nil {
			return api.Usage{}, err
		}
		out := api.Usage{Until: w.Until, By: names, Items: []api.UsageRow{}}
		if !since.IsZero() {
			out.Since = w.Since
		}
		for _, r := range usage.Sum(w, held, work, by...) {
			out.Items = append(out.Items, usageRow(r))
		}
		for _, r := range usage.Sum(w, held, work) {
			out.Total = usageRow(r)
		}
		return out, nil
	})
}

// usageRow returns the API's form of a row.
func usageRow(r usage.Row) api.UsageRow {
	return api.UsageRow{
		User: r.User, Site: r.Site, Workflow: r.Workflow,
		UsageHours: api.UsageHours{
			Allocated: r.Allocated().Hours(), Used: r.Used.Hours(), Idle: r.Idle.Hours(), Lost: r.Lost.Hours(),
		},
	}
}
