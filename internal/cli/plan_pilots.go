package cli

import (
	"slices"
	"time"

	"github.com/corral-pilot/corral/plan"
)

// A numberedPilot is a pilot together with its number in the plan.
type numberedPilot struct {
	plan.Pilot
	number int
}

// listPilots prints the pilots of a plan, with their numbers if a pilot replaces or hedges another.
func (v planVerbs) listPilots(pilots []plan.Pilot) error {
	if !slices.ContainsFunc(pilots, func(q plan.Pilot) bool { return q.Follows != nil || q.Hedges != nil }) {
		return pilotTable.list(v.printer, pilots)
	}
	numbered := listing[numberedPilot]{
		id:      func(q numberedPilot) string { return q.Site },
		columns: []column[numberedPilot]{{"pilot", func(q numberedPilot) any { return q.number }}},
	}
	for _, c := range pilotTable.columns {
		numbered.columns = append(numbered.columns, column[numberedPilot]{c.name,
			func(q numberedPilot) any { return c.cell(q.Pilot) }})
	}
	other := func(name string, of func(plan.Pilot) *int) {
		if !slices.ContainsFunc(pilots, func(q plan.Pilot) bool { return of(q) != nil }) {
			return
		}
		numbered.columns = append(numbered.columns, column[numberedPilot]{name, func(q numberedPilot) any {
			if of(q.Pilot) == nil {
				return "-"
			}
			return *of(q.Pilot)
		}})
	}
	other("follows", func(q plan.Pilot) *int { return q.Follows })
	other("hedges", func(q plan.Pilot) *int { return q.Hedges })
	rows := make([]numberedPilot, len(pilots))
	for i, q := range pilots {
		rows[i] = numberedPilot{q, i}
	}
	return numbered.list(v.printer, rows)
}

var pilotTable = listing[plan.Pilot]{
	id:   func(q plan.Pilot) string { return q.Site },
	none: "the plan has no pilots",
	columns: []column[plan.Pilot]{
		{"site", func(q plan.Pilot) any { return q.Site }},
		{"queue", func(q plan.Pilot) any { return q.Queue }},
		{"hosts", func(q plan.Pilot) any { return q.Hosts }},
		{"cpus", func(q plan.Pilot) any { return q.CPUs }},
		{"walltime", func(q plan.Pilot) any { return time.Duration(q.Walltime).String() }},
		{"submit", func(q plan.Pilot) any { return "+" + brief(q.Submit) }},
		{"ready", func(q plan.Pilot) any { return "+" + brief(q.Ready) }},
		{"end", func(q plan.Pilot) any { return "+" + brief(q.End) }},
	},
}
