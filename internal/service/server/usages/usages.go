// Package usages answers what pilots held and what became of it, by user, site and workflow. What that means is
// package usage's; the store has the times that it follows from.
package usages

import (
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/decide/usage"
	"github.com/corral-pilot/corral/internal/service/rest"
	"github.com/corral-pilot/corral/internal/store"
)

// Routes are /v1/usage.
func Routes(a *rest.Adapter) []rest.Route {
	return []rest.Route{
		rest.Get("/v1/usage", func(c *rest.Call) error { return answer(a, c) }, "since", "until", "by"),
	}
}

// answer adds up what was held and taken in the time that the query names. Both are read in one view, so that no
// attempt is in one without the other.
func answer(a *rest.Adapter, c *rest.Call) error {
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
			out.Items = append(out.Items, row(r))
		}
		for _, r := range usage.Sum(w, held, work) {
			out.Total = row(r)
		}
		return out, nil
	})
}

// row is a row as the API has it.
func row(r usage.Row) api.UsageRow {
	return api.UsageRow{
		User: r.User, Site: r.Site, Workflow: r.Workflow,
		UsageHours: api.UsageHours{
			Allocated: r.Allocated().Hours(), Used: r.Used.Hours(), Idle: r.Idle.Hours(), Lost: r.Lost.Hours(),
		},
	}
}
