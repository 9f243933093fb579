package report

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/plot"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/plan/cost"
	"github.com/corral-pilot/corral/plan/ensemble/record"
)

// EnsembleFacts holds corrald's data about an ensemble.
type EnsembleFacts struct {
	Ensemble record.Ensemble
	Runs     []corral.Run                      // runs of its workflows
	Tasks    map[corral.RunID][]api.TaskStatus // tasks of each run
	Glideins []corral.Glidein                  // of the ensemble; must include deleted glideins
	Now      time.Time
}

// An EnsembleReport describes the course of an ensemble. Times are relative to the ensemble's creation.
type EnsembleReport struct {
	Ensemble  record.Ensemble `json:"ensemble"`
	Span      corral.Seconds  `json:"span_s"` // from the ensemble's creation to its end, or to now
	Workflows []MemberReport  `json:"workflows"`
	Pilots    int             `json:"pilots"`    // number of pilots requested
	PeakCPUs  int             `json:"peak_cpus"` // maximum number of cpus held at once
	Held      corral.Seconds  `json:"held_s"`    // cpu time held
	Used      corral.Seconds  `json:"used_s"`    // cpu time used by the last attempts of tasks

	figures []plot.Figure // the schedule, cpus, and spending
}

// MemberReport describes one workflow of an ensemble.
type MemberReport struct {
	record.Member
	Begun *corral.Seconds `json:"begun_s,omitempty"`
	Ended *corral.Seconds `json:"ended_s,omitempty"`
	Done  int             `json:"done"` // number of tasks done
}

// OfEnsemble creates the report of an ensemble.
func OfEnsemble(f EnsembleFacts) *EnsembleReport {
	e := f.Ensemble
	r := &EnsembleReport{Ensemble: e, Span: since(e.CreatedAt, f.Now), Pilots: len(f.Glideins)}
	if !e.EndedAt.IsZero() {
		r.Span = since(e.CreatedAt, e.EndedAt)
	}
	g := plot.Gantt{Title: fmt.Sprintf("Ensemble %d: %s", e.ID, e.Name), Since: sinceBegun, End: r.Span}
	var all []stay
	for k, m := range e.Members {
		name := fmt.Sprintf("%d: %s", k, m.Workflow)
		w := MemberReport{Member: m}
		if i := slices.IndexFunc(f.Runs, func(x corral.Run) bool { return x.ID == m.Run }); i >= 0 {
			run := f.Runs[i]
			w.Begun, w.Done = new(since(e.CreatedAt, run.CreatedAt)), run.Tasks.Done
			if run.State.Over() {
				w.Ended = new(since(e.CreatedAt, run.EndedAt))
			}
			g.Kinds = append(g.Kinds, name)
			all = append(all, memberStays(e.CreatedAt, name, f.Tasks[m.Run], r.Span)...)
		}
		r.Workflows = append(r.Workflows, w)
	}
	slices.SortStableFunc(all, func(a, b stay) int { return cmp.Compare(a.From, b.From) })
	var busy []plot.Span
	for _, x := range all {
		busy = append(busy, x.Span)
		r.Used += x.To - x.From
	}
	held := plot.Sum(heldBy(RunFacts{Run: corral.Run{CreatedAt: e.CreatedAt}, Glideins: f.Glideins}, nil, r.Span))
	r.PeakCPUs, r.Held = int(held.Peak()), area(held)
	r.figures = []plot.Figure{
		lanesOf(g, all),
		plot.Staircase{Title: "Cpus", Since: sinceBegun, Held: held, Busy: plot.Sum(busy),
			Deadline: e.Goal.Deadline, Subtitle: fmt.Sprintf("%d pilots of %d cpus", r.Pilots, e.Pilots.CPUs)},
	}
	if money, ok := moneyOf(e, held); ok {
		r.figures = append(r.figures, money)
	}
	return r
}

const sinceBegun = "the ensemble's beginning"

// memberStays returns the times at which tasks of a workflow ran.
func memberStays(from time.Time, name string, tasks []api.TaskStatus, end corral.Seconds) (all []stay) {
	for _, t := range tasks {
		if t.StartedAt.IsZero() || t.Worker == "" {
			continue
		}
		x := stay{kind: name, worker: t.Worker}
		x.CPUs, x.From, x.To = 1, since(from, t.StartedAt), end
		if !t.EndedAt.IsZero() {
			x.To = since(from, t.EndedAt)
		}
		all = append(all, x)
	}
	return all
}

// area returns the cpu time under levels.
func area(l plot.Levels) (sum corral.Seconds) {
	for i := 1; i < len(l); i++ {
		sum += corral.Seconds(l[i-1].CPUs * float64(l[i].From-l[i-1].From))
	}
	return sum
}

// moneyOf plots the spending over time beside the budget, under the assumption that held resources have a constant
// price.
func moneyOf(e record.Ensemble, held plot.Levels) (plot.Chart, bool) {
	spent, err1 := cost.ParseAmount(e.Spent)
	budget, err2 := cost.ParseAmount(e.Goal.Budget)
	whole := area(held)
	if err1 != nil || err2 != nil || whole <= 0 {
		return plot.Chart{}, false
	}
	price := spent.Money.Units() / float64(whole)
	one, unit := plot.Times(held.End())
	at := func(d corral.Seconds) float64 { return time.Duration(d).Seconds() / one }
	line := plot.Series{Name: "spent", Line: true, At: []plot.XY{{X: 0, Y: 0}}}
	var sum float64
	for i := 1; i < len(held); i++ {
		line.At = append(line.At, plot.XY{X: at(held[i-1].From), Y: sum})
		sum += price * held[i-1].CPUs * float64(held[i].From-held[i-1].From)
		line.At = append(line.At, plot.XY{X: at(held[i].From), Y: sum})
	}
	return plot.Chart{Title: "Money", Subtitle: fmt.Sprintf("%s of %s", spent.Brief(), budget.Brief()),
		X: fmt.Sprintf("time since %s (%s)", sinceBegun, unit), Y: string(budget.Unit), Series: []plot.Series{line,
			{Name: "budget", Line: true, At: []plot.XY{{X: 0, Y: budget.Money.Units()},
				{X: at(held.End()), Y: budget.Money.Units()}}}}}, true
}

// Figures returns the pictures of the page.
func (r *EnsembleReport) Figures() []plot.Figure { return r.figures }

// Write writes the page.
func (r *EnsembleReport) Write(w io.Writer) error {
	view := struct {
		*EnsembleReport
		Completed int
		Over      bool
		Use       float64
		Pictures  []template.HTML
	}{EnsembleReport: r, Completed: r.Ensemble.Completed(), Over: r.Ensemble.State == record.Ended,
		Use: float64(r.Used) / float64(max(1, r.Held))}
	for _, figure := range r.figures {
		drawn, err := inline(figure)
		if err != nil {
			return err
		}
		view.Pictures = append(view.Pictures, drawn)
	}
	return wrap.Errorf(pages.ExecuteTemplate(w, "ensemble.html", view), "writing the report")
}
