package main

import (
	"fmt"

	"github.com/corral-pilot/corral/plan"
)

// entrantTable puts the algorithms beside each other whose plans were played.
var entrantTable = listing[plan.Entrant]{
	id:   func(e plan.Entrant) string { return string(e.Algorithm) },
	none: "nothing was compared",
	columns: []column[plan.Entrant]{
		{"algorithm", func(e plan.Entrant) any { return e.Algorithm }},
		{"makespan", played(func(e plan.Entrant) any { return brief(e.Makespan) })},
		{"cost", played(func(e plan.Entrant) any { return priced(e.Cost) })},
		{"peak cpus", played(func(e plan.Entrant) any { return e.PeakCPUs })},
		{"missed", played(func(e plan.Entrant) any { return percent(e.Missed) })},
		{"weight", played(func(e plan.Entrant) any { return fmt.Sprintf("%.3f", e.Weight) })},
		{"", func(e plan.Entrant) any {
			if e.Won {
				return "taken"
			}
			return e.Why
		}},
	},
}

// played is a cell of an algorithm that has made a plan.
func played(cell func(plan.Entrant) any) func(plan.Entrant) any {
	return func(e plan.Entrant) any {
		if e.Why != "" {
			return ""
		}
		return cell(e)
	}
}

// rivalTable puts a plan beside policies that only react to a queue.
var rivalTable = listing[plan.Rival]{
	id:   func(r plan.Rival) string { return r.Policy },
	none: "nothing was compared",
	columns: []column[plan.Rival]{
		{"policy", func(r plan.Rival) any { return r.Policy }},
		{"parameters", func(r plan.Rival) any { return r.Parameters }},
		{"makespan", func(r plan.Rival) any { return brief(r.Makespan) }},
		{"core-hours", func(r plan.Rival) any { return fmt.Sprintf("%.4g", r.CoreHours) }},
		{"waste", func(r plan.Rival) any { return fmt.Sprintf("%.0f %%", 100*r.Waste) }},
		{"requests", func(r plan.Rival) any { return r.Requests }},
		{"finished", func(r plan.Rival) any { return fmt.Sprintf("%.0f %%", 100*r.Finished) }},
	},
}
