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
		{"planned", func(e plan.Entrant) any { return brief(e.Planned) }},
		{"simulated", func(e plan.Entrant) any { return brief(e.Makespan) }},
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
				return "chosen"
			}
			return ""
		}},
	},
}

// showComparison lists the plans of all algorithms and the policies that only react to a queue in one table.
func (v planVerbs) showComparison(document *plan.Plan) error {
	fmt.Fprintln(v.out, "\nmedians of simulated outcomes; policies request pilots of one shape:")
	var simulated, without []plan.Rival
	for _, r := range document.Comparison {
		if r.Why != "" {
			without = append(without, r)
		} else {
			simulated = append(simulated, r)
		}
	}
	alpha, _ := document.Goal.Alpha()
	err := rivalTable(alpha).list(v.printer, simulated)
	for _, r := range without {
		fmt.Fprintf(v.out, "no plan by %s: %s\n", r.Policy, r.Why)
	}
	return err
}

// rivalTable compares plans and policies; alpha is the weight of the cost.
func rivalTable(alpha plan.Share) listing[plan.Rival] {
	return listing[plan.Rival]{
		id:   func(r plan.Rival) string { return r.Policy },
		none: "nothing was compared",
		columns: []column[plan.Rival]{
			{"plan or policy", func(r plan.Rival) any {
				if r.Planned {
					return "plan by " + r.Policy
				}
				return r.Policy
			}},
			{"parameters", func(r plan.Rival) any { return r.Parameters }},
			{"makespan", func(r plan.Rival) any { return brief(r.Makespan) }},
			{"cost", func(r plan.Rival) any { return priced(r.Cost) }},
			{"peak cpus", func(r plan.Rival) any { return r.PeakCPUs }},
			{"pilots", func(r plan.Rival) any { return r.Requests }},
			{"waste", func(r plan.Rival) any { return fmt.Sprintf("%.0f %%", 100*r.Waste) }},
			{"finished", func(r plan.Rival) any { return fmt.Sprintf("%.0f %%", 100*r.Finished) }},
			{fmt.Sprintf("J(%s)", alpha), func(r plan.Rival) any {
				if r.Weight == 0 {
					return "" // the value has no influence
				}
				return fmt.Sprintf("%.3f", r.Weight)
			}},
			{"", func(r plan.Rival) any { return map[bool]string{true: "chosen"}[r.Chosen] }},
		},
	}
}
