// Package report writes a plan's prediction and the actual course as one self-contained HTML page, which consists of
// tables, and of pictures as inline SVG. It does the same for runs and ensembles.
//
// Of creates a Report from corrald's data; it is pure, and scripts read its result as JSON. Write lays out the report.
// Times are relative to the start of the plan. Unknown values are omitted, never shown as 0.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/plot"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/cost"
)

// Facts holds corrald's data about a plan.
type Facts struct {
	Plan      corral.Plan
	Schedule  []plan.Placement // set only if it is stored separately from the plan's document
	Revisions []corral.Revision
	Glideins  []corral.Glidein // with the plan's label; must include deleted glideins
	Run       *corral.Run      // the latest run with the plan's label; nil: none
	Tasks     []api.TaskStatus // tasks of Run
	Ledgers   []api.Ledger     // ledgers of the sites of the plan's pilots, if known
	Now       time.Time
}

// A Report compares a plan's prediction with the actual values.
type Report struct {
	Plan      corral.PlanID     `json:"plan_id"`
	Document  *plan.Plan        `json:"plan"`
	State     corral.PlanState  `json:"state"`
	Made      time.Time         `json:"created_at"`
	Run       corral.RunID      `json:"run_id,omitempty"`
	RunState  corral.RunState   `json:"run_state,omitempty"`
	Actual    *Actual           `json:"actual,omitempty"` // set once the run is over
	Kinds     []Kind            `json:"kinds,omitempty"`  // kinds of tasks by planned time, the largest first
	Revisions []corral.Revision `json:"revisions,omitempty"`

	taken plot.Actual
}

// Actual contains the actual values of a plan's run.
type Actual struct {
	Makespan  corral.Seconds `json:"makespan_s"` // from the plan's start to the run's end
	CoreHours float64        `json:"core_hours"` // core-hours held by the plan's pilots
	Cost      *cost.Amount   `json:"cost"`       // the amount billed; null: unknown
}

// A Kind compares the completed tasks of one transformation with their planned times.
type Kind struct {
	Name    string         `json:"kind"`
	Tasks   int            `json:"tasks"`
	Planned corral.Seconds `json:"planned_mean_s"`
	Took    corral.Seconds `json:"actual_mean_s"`
	Ratio   *float64       `json:"ratio"`      // sum of actual ÷ sum of planned times; null: the planned sum is 0
	Off     corral.Seconds `json:"mean_off_s"` // mean absolute difference between actual and planned times
}

// Of creates the report of a plan. It returns a Conflict error for a plan without pilots and without a nearest plan.
func Of(f Facts) (*Report, error) {
	document, err := Document(f.Plan)
	if err != nil {
		return nil, err
	}
	if !document.Whole() {
		document.Schedule = f.Schedule
	}
	r := &Report{Plan: f.Plan.ID, Document: document, State: f.Plan.State, Made: f.Plan.CreatedAt,
		Revisions: f.Revisions}
	if f.Run == nil {
		return r, nil
	}
	r.Run, r.RunState = f.Run.ID, f.Run.State
	if !f.Run.State.Over() || f.Plan.BeganAt.IsZero() {
		return r, nil
	}
	held := Held(f.Glideins, f.Plan.BeganAt, f.Now)
	r.Actual = &Actual{Makespan: since(f.Plan.BeganAt, f.Run.EndedAt), CoreHours: CoreHours(held),
		Cost: Billed(f.Plan.ID, document.Cost.Unit, f.Ledgers)}
	r.taken = plot.Actual{Held: plot.Sum(held), Busy: plot.Sum(used(f, document))}
	for _, rev := range f.Revisions {
		mark := plot.Mark{At: since(f.Plan.BeganAt, rev.At), Text: fmt.Sprint(rev.Number)}
		r.taken.Marks = append(r.taken.Marks, mark)
	}
	r.Kinds = kinds(f.Tasks, document)
	return r, nil
}

// Document reads a plan's document. If the goal is out of reach, it returns the nearest plan, or a Conflict error if
// there is none.
func Document(row corral.Plan) (*plan.Plan, error) {
	document, err := plan.Decode(row)
	if err != nil {
		return nil, err
	}
	switch near := document.Nearest; {
	case document.Feasible:
		return document, nil
	case near == nil:
		return nil, corral.ErrorAt(corral.Conflict, "plan", "its goal is out of reach, and no nearest plan is known")
	default:
		near.Workflow, near.Goal = document.Workflow+" (nearest plan)", document.Goal
		return near, nil
	}
}

// since returns a time relative to the plan's start.
func since(began, at time.Time) corral.Seconds { return corral.Seconds(max(0, at.Sub(began))) }

// Held returns the cpus that the attempts of glideins held, until now for attempts that still hold them.
func Held(glideins []corral.Glidein, began, now time.Time) (all []plot.Span) {
	for _, g := range glideins {
		for _, a := range g.Attempts {
			end := a.EndedAt
			if a.Live() {
				end = now
			}
			if !a.StartedAt.IsZero() {
				all = append(all, plot.Span{From: since(began, a.StartedAt), To: since(began, end),
					CPUs: g.Hosts * g.CPUs})
			}
		}
	}
	return all
}

// CoreHours returns the sum of spans in core-hours.
func CoreHours(spans []plot.Span) (sum float64) {
	for _, s := range spans {
		sum += float64(s.CPUs) * max(0, time.Duration(s.To-s.From).Hours())
	}
	return sum
}

// used returns the cpus that tasks used in their last executions; corrald does not store the times of earlier
// executions.
func used(f Facts, document *plan.Plan) (all []plot.Span) {
	cpus := make(map[string]int, len(document.Schedule))
	for _, at := range document.Schedule {
		cpus[at.ID] = at.UsedCPUs()
	}
	for _, t := range f.Tasks {
		if !t.StartedAt.IsZero() && !t.EndedAt.IsZero() {
			all = append(all, plot.Span{From: since(f.Plan.BeganAt, t.StartedAt),
				To: since(f.Plan.BeganAt, t.EndedAt), CPUs: max(1, cpus[t.ID])})
		}
	}
	return all
}

// Billed returns the plan's charges at all sites, or nil if their units differ or no charge is known.
func Billed(id corral.PlanID, unit cost.Unit, ledgers []api.Ledger) *cost.Amount {
	var sum *cost.Amount
	for _, l := range ledgers {
		for _, line := range l.Plans {
			switch {
			case line.Plan != id:
			case l.Unit != unit:
				return nil
			case sum == nil:
				sum = &cost.Amount{Money: line.Billed, Unit: unit}
			default:
				sum.Money = sum.Money.Plus(line.Billed)
			}
		}
	}
	return sum
}

// kinds compares the durations of tasks with those in the plan's schedule.
func kinds(tasks []api.TaskStatus, document *plan.Plan) (all []Kind) {
	planned := make(map[string]plan.Placement, len(document.Schedule))
	for _, at := range document.Schedule {
		planned[at.ID] = at
	}
	index := map[string]int{}
	for _, t := range tasks {
		at, ok := planned[t.ID]
		if !ok || t.State != corral.TaskDone || t.StartedAt.IsZero() || t.EndedAt.IsZero() {
			continue
		}
		k, known := index[at.Kind]
		if !known {
			k, index[at.Kind] = len(all), len(all)
			all = append(all, Kind{Name: at.Kind})
		}
		took, want := corral.Seconds(t.EndedAt.Sub(t.StartedAt)), at.End-at.Start
		all[k].Tasks++
		all[k].Planned += want
		all[k].Took += took
		all[k].Off += max(took-want, want-took)
	}
	slices.SortStableFunc(all, func(a, b Kind) int { return cmp.Compare(b.Planned, a.Planned) })
	for i := range all {
		k := &all[i]
		if k.Planned > 0 {
			ratio := float64(k.Took) / float64(k.Planned)
			k.Ratio = &ratio
		}
		n := corral.Seconds(k.Tasks)
		k.Planned, k.Took, k.Off = k.Planned/n, k.Took/n, k.Off/n
	}
	return all
}
