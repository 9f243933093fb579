package cli

import (
	"fmt"
	"slices"

	"github.com/corral-pilot/corral/plan"
)

// showContest lists the algorithms whose plans were simulated, and the reasons why other algorithms made no plan.
func (v planVerbs) showContest(all []plan.Entrant) error {
	made := slices.DeleteFunc(slices.Clone(all), func(e plan.Entrant) bool { return e.Why != "" })
	if err := entrantTable.list(v.printer, made); err != nil {
		return err
	}
	for _, e := range all {
		if e.Why != "" {
			fmt.Fprintf(v.out, "no plan by %s: %s\n", e.Algorithm, e.Why)
		}
	}
	return nil
}

var entrantTable = listing[plan.Entrant]{
	id:   func(e plan.Entrant) string { return string(e.Algorithm) },
	none: "no algorithm has made a plan that completes",
	columns: []column[plan.Entrant]{
		{"algorithm", func(e plan.Entrant) any { return e.Algorithm }},
		{"makespan", func(e plan.Entrant) any { return brief(e.Makespan) }},
		{"cost", func(e plan.Entrant) any { return priced(e.Cost) }},
		{"peak cpus", func(e plan.Entrant) any { return e.PeakCPUs }},
		{"missed", func(e plan.Entrant) any { return percent(e.Missed) }},
		{"weight", func(e plan.Entrant) any {
			if e.Weight == 0 {
				return "" // the value has no influence
			}
			return fmt.Sprintf("%.3f", e.Weight)
		}},
		{"", func(e plan.Entrant) any {
			if e.Won {
				return "taken"
			}
			return ""
		}},
	},
}

// rivalTable compares a plan with policies that only react to a queue.
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
