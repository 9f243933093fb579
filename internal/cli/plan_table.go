package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// A planRow is a plan with the values that are encoded in its texts, each decoded once for all cells. In JSON it is the
// same as the plan.
type planRow struct {
	corral.Plan
	document *plan.Plan   // nil: the plan is from a list, or its document is damaged
	summary  plan.Summary // zero: the document or the summary is damaged
}

func planRowOf(row corral.Plan) planRow {
	if row.Summary == nil {
		document, err := plan.Decode(row)
		if err != nil {
			return planRow{Plan: row}
		}
		return planRow{row, document, document.Summary()}
	}
	r := planRow{Plan: row}
	if err := json.Unmarshal(row.Summary, &r.summary); err != nil {
		r.summary = plan.Summary{}
	}
	return r
}

// planRows lists plans in the same way as the client.
func planRows(cl *api.Client, ctx context.Context, f api.Filter) ([]planRow, error) {
	all, err := cl.Plans(ctx, f)
	rows := make([]planRow, len(all))
	for i, row := range all {
		rows[i] = planRowOf(row)
	}
	return rows, err
}

// showRow prints the fields of a plan.
func (v planVerbs) showRow(row corral.Plan) error { return planTable.show(v.printer, planRowOf(row)) }

// fromDocument returns a cell computed from a plan's document. The cell is empty if the goal is out of reach or if
// there is no document.
func fromDocument(cell func(*plan.Plan) any) func(planRow) any {
	return func(r planRow) any {
		if r.document == nil || !r.document.Feasible {
			return ""
		}
		return cell(r.document)
	}
}

// fromSummary returns a cell computed from a plan's summary.
func fromSummary(cell func(plan.Summary) any) func(planRow) any {
	return func(r planRow) any {
		if !r.summary.Feasible {
			return ""
		}
		return cell(r.summary)
	}
}

func brief(d corral.Seconds) string { return time.Duration(d).Round(100 * time.Millisecond).String() }

var planTable = listing[planRow]{
	owner: func(r planRow) string { return r.Owner },
	id:    func(r planRow) string { return fmt.Sprint(r.ID) },
	none:  "no plans; make one with `corral plan WORKFLOW`",
	columns: []column[planRow]{
		{"id", func(r planRow) any { return r.ID }},
		{"workflow", func(r planRow) any { return r.Workflow }},
		{"cluster", func(r planRow) any { return r.ClusterName }},
		{"pilots", fromSummary(func(d plan.Summary) any { return d.Pilots })},
		{"peak cpus", fromSummary(func(d plan.Summary) any { return d.PeakCPUs })},
		{"makespan", fromSummary(func(d plan.Summary) any { return brief(d.Makespan) })},
		{"cost", fromSummary(func(d plan.Summary) any { return priced(d.Cost) })},
		{"waste", fromSummary(func(d plan.Summary) any { return fmt.Sprintf("%.0f %%", 100*d.Waste) })},
		{"state", func(r planRow) any { return r.State }},
		{"reason", func(r planRow) any { return r.Reason }},
	},
	details: []column[planRow]{
		{"lower bound", fromDocument(func(d *plan.Plan) any {
			if d.LowerBound == nil {
				return ""
			}
			return fmt.Sprintf("%d or more cpus", *d.LowerBound)
		})},
		{"clustering", fromDocument(func(d *plan.Plan) any { return d.Clustering })},
		{"outcomes", fromDocument(oddsOf)},
		{"estimates", fromDocument(func(d *plan.Plan) any { return plan.Sources(d.Estimates) })},
		{"errors", fromDocument(func(d *plan.Plan) any {
			if d.Assumed == nil {
				return ""
			}
			return d.Assumed.Errors.Law(d.Assumed.Spread)
		})},
		{"waits", fromDocument(func(d *plan.Plan) any { return strings.Join(d.Priors, "; ") })},
		{"confidence", fromDocument(confidenceOf)},
		{"began", func(r planRow) any { return when(r.BeganAt) }},
		{"limits", fromDocument(func(d *plan.Plan) any { return strings.Join(d.Limits, "; ") })},
	},
}

// oddsOf formats the shares of simulated outcomes that reach a plan's goal, each with its 95 % interval.
func oddsOf(d *plan.Plan) any {
	o := d.Odds
	if o == nil {
		return ""
	}
	said := fmt.Sprintf("it finishes in %s of %d", o.Finishes, o.Outcomes)
	if o.InTime != nil {
		said += fmt.Sprintf(", within the deadline in %s", o.InTime)
	}
	if o.InBudget != nil {
		said += fmt.Sprintf(", within the budget in %s", o.InBudget)
	}
	if o.Finishes.Share == 0 {
		return said
	}
	return said + fmt.Sprintf("; median %s, %s; p90 %s, %s", brief(o.Makespan.Median), priced(o.Cost.Median),
		brief(o.Makespan.P90), priced(o.Cost.P90))
}

// confidenceOf formats the probability that a plan meets its deadline and its budget, if a confidence was requested.
func confidenceOf(d *plan.Plan) any {
	c := d.Confidence
	switch {
	case c == nil:
		return ""
	case c.NextCheaper == nil:
		return fmt.Sprintf("%.3f of %g asked for; no candidate is cheaper", c.Reached, c.Asked)
	}
	return fmt.Sprintf("%.3f of %g asked for; the next cheaper candidate reaches %.3f", c.Reached, c.Asked,
		*c.NextCheaper)
}

func priced(a cost.Amount) string { return a.Brief() }

var pointTable = listing[plan.Point]{
	id:   func(o plan.Point) string { return brief(o.Makespan) },
	none: "no other plans are possible",
	columns: []column[plan.Point]{
		{"makespan", func(o plan.Point) any { return brief(o.Makespan) }},
		{"cost", func(o plan.Point) any { return priced(o.Cost) }},
		{"core-hours", func(o plan.Point) any { return fmt.Sprintf("%.4g", o.CoreHours) }},
		{"peak cpus", func(o plan.Point) any { return o.PeakCPUs }},
	},
}

var revisionTable = listing[corral.Revision]{
	id:   func(r corral.Revision) string { return fmt.Sprint(r.Number) },
	none: "the plan was not revised",
	columns: []column[corral.Revision]{
		{"revision", func(r corral.Revision) any { return r.Number }},
		{"at", func(r corral.Revision) any { return when(r.At) }},
		{"added", func(r corral.Revision) any { return len(r.Added) }},
		{"dropped", func(r corral.Revision) any { return len(r.Dropped) }},
		{"end", func(r corral.Revision) any { return "+" + brief(r.End) }},
		{"cost", func(r corral.Revision) any { return r.Cost }},
		{"why", func(r corral.Revision) any { return strings.Join(r.Why(), "; ") }},
	},
}
