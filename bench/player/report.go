package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// A report is the output of the program.
type report struct {
	Tasks     int      `json:"tasks"`
	Planned   figures  `json:"planned"` // what the plan promises
	Play      result   `json:"play"`
	Draws     *draws   `json:"draws,omitempty"`
	Differ    int      `json:"tasks_with_other_estimates"` // between the workflow and the plan's schedule
	NotJudged []string `json:"not_judged"`
}

// figures is a makespan and a cost.
type figures struct {
	Makespan seconds `json:"makespan_s"`
	Cost     amount  `json:"cost"`
}

// newGame combines a plan with its workflow and its sites.
func newGame(p *plan, tasks []task, sites map[place]*site, set rules) (*game, error) {
	a := p.Assumed
	set.hop, set.reuse, set.leave = a.Hop, a.Reuse, a.Leave
	if a.Rate > 0 {
		set.gap = seconds(float64(second) / a.Rate)
	}
	g := &game{rules: set, tasks: tasks, pilots: p.Pilots, present: a.Present, goal: p.Goal, unit: p.Cost.Unit,
		sites: sites, first: make([][]int, len(p.Pilots)),
		lead: make([]seconds, len(p.Pilots)), transfer: map[string]transfer{}}
	for i, q := range p.Pilots {
		s := sites[place{q.Site, q.Queue}]
		g.at = append(g.at, s)
		if s.Unit != g.unit && len(s.Unit) > 0 { // amounts in two units have no sum
			return nil, fmt.Errorf("pilot %d is paid in %s, but the plan's cost is in %s", i, s.Unit, g.unit)
		}
	}
	if b := p.Goal.Budget; b != nil && b.Unit != g.unit {
		return nil, fmt.Errorf("the budget is in %s, but the plan's cost is in %s", b.Unit, g.unit)
	}
	for _, t := range a.Transfers {
		g.transfer[t.Site] = t
	}
	g.allot(p.Schedule)
	return g, g.resume(p.Schedule)
}

// resume finds the tasks that run on the present pilots, and when they end by the schedule.
func (g *game) resume(schedule []placement) error {
	where := map[string]placement{}
	for _, at := range schedule {
		where[at.Task] = at
	}
	index := make(map[string]int, len(g.tasks))
	for i, t := range g.tasks {
		index[t.id] = i
	}
	for k, t := range g.present {
		for _, b := range t.Running {
			i, known := index[b.Task]
			at := where[b.Task]
			pilot := len(g.pilots) + k
			if !known || at.Task == "" || at.Pilot != pilot || at.Start != 0 || b.Host < 0 || b.Host >= t.Hosts {
				return fmt.Errorf("task %s runs on a pilot at %s already, but the schedule does not have it there",
					b.Task, t.Site)
			}
			g.begun = append(g.begun, resumption{pilot, b.Host, i, at.End})
		}
	}
	return nil
}

// allot finds the first tasks of each pilot: those that the schedule starts on it at the earliest time. A hedge waits
// for the tasks of the pilot that it hedges. Each pilot's lead is the planned time from its submission to then.
func (g *game) allot(schedule []placement) {
	index := make(map[string]int, len(g.tasks))
	for i, t := range g.tasks {
		index[t.id] = i
	}
	begin := map[int]seconds{}
	for _, at := range schedule {
		i, ok := index[at.Task]
		if !ok || at.Pilot < 0 || at.Pilot >= len(g.pilots) {
			continue // on a pilot that was there before, or of another workflow, which the report counts
		}
		earliest, known := begin[at.Pilot]
		if !known || at.Start < earliest {
			begin[at.Pilot], g.first[at.Pilot] = at.Start, nil
		}
		if at.Start == begin[at.Pilot] {
			g.first[at.Pilot] = append(g.first[at.Pilot], i)
		}
	}
	for i, q := range g.pilots {
		of := i
		if q.Hedges != nil {
			of = *q.Hedges
			g.first[i] = g.first[of]
		}
		g.lead[i] = begin[of] - g.hop - q.Submit
	}
}

// speedOn returns the speed of a pilot of the schedule; those that were present are numbered after the plan's own.
func (g *game) speedOn(pilot int) float64 {
	switch k := pilot - len(g.pilots); {
	case pilot < 0 || k >= len(g.present):
		return 1
	case k >= 0:
		return speedOf(g.present[k].Speed)
	}
	return speedOf(g.at[pilot].Speed)
}

// notJudged lists the parts of reality that neither the plan nor the description of its sites contains.
func (g *game) notJudged(p *plan) []string {
	all := map[string]bool{}
	for i, q := range p.Pilots {
		s := g.at[i]
		if len(s.Nodes) == 0 {
			all[fmt.Sprintf("site %s: its nodes are not known, so that only its limits are checked", s.Site)] = true
		}
		if q.MemoryMiB == 0 {
			all[fmt.Sprintf("site %s: the memory of its hosts is not known", s.Site)] = true
		}
		if s.Margin == 0 {
			all[fmt.Sprintf("site %s: the plan has no margin before the end of a walltime", s.Site)] = true
		}
		if s.Left != nil {
			all[fmt.Sprintf("site %s: the rest of its allocation", s.Site)] = true
		}
		if len(s.Room) > 0 {
			all[fmt.Sprintf("site %s: whether its queue has room when the plan says so", s.Site)] = true
		}
	}
	if len(g.present) > 0 {
		all["the nodes that the present pilots hold, and the limits that they count for"] = true
	}
	if p.Clustering != "" && p.Clustering != "none" {
		all["clustering "+p.Clustering+": each task is played as a job of its own"] = true
	}
	if len(p.Schedule) == 0 {
		all["which tasks a pilot was requested for: the plan has no schedule, so that the clock decides"] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// print writes the report as JSON or as a table.
func (rep *report) print(out io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(rep)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name string, value any) { fmt.Fprintf(w, "%s\t%v\n", name, value) }
	x := &rep.Play
	row("finished", fmt.Sprintf("%d of %d tasks", x.Finished, rep.Tasks))
	if x.Makespan != nil {
		row("makespan", fmt.Sprintf("%s (planned %s)", x.Makespan, rep.Planned.Makespan))
	}
	row("cost", fmt.Sprintf("%s (planned %s)", x.Cost, rep.Planned.Cost))
	row("deadline", verdictOn(x.Deadline))
	row("budget", verdictOn(x.Budget))
	row("node violations", fmt.Sprintf("%d (%d undecided)", x.Violations, x.Undecided))
	row("tasks cut off", x.Killed)
	row("forced submissions", x.Forced)
	for _, reason := range []string{byParent, bySize, byTime, byStart, byPlanned, byPilots} {
		n, first := 0, ""
		for _, s := range slices.Backward(x.Stranded) {
			if s.Reason == reason {
				n, first = n+1, s.Task+" "+s.Detail
			}
		}
		if n > 0 {
			row("stranded", fmt.Sprintf("%d: %s (first: %s)", n, reason, first))
		}
	}
	if rep.Draws != nil {
		rep.Draws.rows(row)
	}
	if rep.Differ > 0 {
		row("other estimates", fmt.Sprintf("%d tasks differ between the workflow and the plan's schedule", rep.Differ))
	}
	for _, what := range rep.NotJudged {
		row("not judged", what)
	}
	return w.Flush()
}

// rows prints the draws.
func (d *draws) rows(row func(name string, value any)) {
	row("draws", fmt.Sprintf("%d, error %g, seed %d", d.Number, d.Error, d.Seed))
	for _, s := range []struct {
		name  string
		share *share
	}{{"  finished", &d.Finished}, {"  within deadline", d.Deadline}, {"  within budget", d.Budget}} {
		if s.share != nil {
			row(s.name, fmt.Sprintf("%.3f (%.3f to %.3f)", s.share.Share, s.share.Low, s.share.High))
		}
	}
	if d.MakespanP50 != nil {
		row("  makespan", fmt.Sprintf("p50 %s, p90 %s", d.MakespanP50, d.MakespanP90))
	}
	row("  cost", fmt.Sprintf("p50 %s, p90 %s", d.CostP50, d.CostP90))
}

// verdictOn describes whether a bound was kept.
func verdictOn(kept *bool) string {
	switch {
	case kept == nil:
		return "none"
	case *kept:
		return "kept"
	}
	return "broken"
}
