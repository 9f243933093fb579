package cli

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
)

// showMarginal prints the benefit of further cpus, if that was requested, and below that the steps that are not worth
// their cost.
func (v planVerbs) showMarginal(all []plan.Marginal) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintln(v.out, "\nwhat further cpus are worth, compared with the line before:")
	if err := marginalTable.list(v.printer, all); err != nil {
		return err
	}
	for _, m := range all {
		if m.Warning != "" {
			fmt.Fprintln(v.out, "-", m.Warning)
		}
	}
	return nil
}

var marginalTable = listing[plan.Marginal]{
	id: func(m plan.Marginal) string { return fmt.Sprint(m.PeakCPUs) },
	columns: []column[plan.Marginal]{
		{"peak cpus", func(m plan.Marginal) any { return m.PeakCPUs }},
		{"makespan", func(m plan.Marginal) any { return brief(m.Makespan) }},
		{"cost", func(m plan.Marginal) any { return priced(m.Cost) }},
		{"saves", func(m plan.Marginal) any { return brief(m.Saved) }},
		{"for", func(m plan.Marginal) any { return priced(m.Extra) }},
		{"saved for one", func(m plan.Marginal) any {
			if m.Rate == nil {
				return "nothing more is paid"
			}
			return savedForOne(*m.Rate) + "/" + string(m.Extra.Unit)
		}},
		{"speed-up", func(m plan.Marginal) any { return fmt.Sprintf("%.2f of %.2f", m.SpeedUp, m.Linear) }},
	},
}

// savedForOne formats seconds as a duration, or as a number if they exceed a lifetime.
func savedForOne(seconds float64) string {
	if seconds > 1e9 {
		return fmt.Sprintf("%.3gs", seconds)
	}
	return brief(corral.Seconds(seconds * float64(time.Second)))
}
