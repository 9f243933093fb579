package main

import (
	"fmt"

	"github.com/corral-pilot/corral/plan"
)

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
