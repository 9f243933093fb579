package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	planning "github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/plan/planner/revision"
)

// An outcome compares a plan with its execution. Times count from the plan's beginning.
type outcome struct {
	name      string
	tasks     int
	seed      uint64 // of the errors; 0: without errors
	goal      planning.Goal
	predicted planning.Point

	took    time.Duration // until the run's end
	held    time.Duration // cpu time of all pilots
	added   int           // pilots, by revisions
	dropped int
	late    time.Duration // when a miss of the deadline was predicted; 0: it was not, or the prediction was withdrawn
	said    []string      // by revisions: time, change, reason
	trouble string        // why the workflow was not done
}

// revise adds a revision's changes and messages, for a plan that began at the given time.
func (o *outcome) revise(r corral.Revision, began time.Time) {
	o.added, o.dropped = o.added+len(r.Added), o.dropped+len(r.Dropped)
	o.said = append(o.said, fmt.Sprintf("after %.1f s +%d −%d: %s", r.At.Sub(began).Seconds(), len(r.Added),
		len(r.Dropped), strings.Join(append(r.Reasons, r.Limits...), "; ")))
	switch revision.News(r.News) {
	case revision.Late:
		o.late = r.At.Sub(began)
	case revision.InTime:
		o.late = 0
	}
}

// off returns how much longer than predicted it took, in percent.
func (o outcome) off() float64 {
	return 100 * (float64(o.took)/float64(o.predicted.Makespan) - 1)
}

// kept reports whether the budget was kept.
func (o outcome) kept() bool {
	return o.goal.Budget == nil || o.held.Hours()*1e6 <= float64(o.goal.Budget.Money)
}

// met reports whether the workflow was done by its deadline.
func (o outcome) met() bool {
	return o.trouble == "" && (o.goal.Deadline == 0 || o.took <= time.Duration(o.goal.Deadline))
}

// slack returns how much later than the plan's prediction the deadline is, in percent.
func (o outcome) slack() float64 {
	return 100 * (float64(o.goal.Deadline)/float64(o.predicted.Makespan) - 1)
}

// errs describes how far the runtimes differ from the estimates.
func (o outcome) errs() string {
	if o.seed == 0 {
		return "0"
	}
	return fmt.Sprintf("±%.0f %%, seed %d", 100*runtimeError, o.seed)
}

// verdict describes whether the deadline was met.
func (o outcome) verdict() string {
	deadline := time.Duration(o.goal.Deadline)
	switch {
	case deadline == 0:
		return "–"
	case o.met():
		return "met"
	case o.late > 0 && o.late < deadline:
		return fmt.Sprintf("missed, said %.1f s before", (deadline - o.late).Seconds())
	}
	return "missed, not said before"
}

// cells returns the outcome as a row of the table.
func (o outcome) cells() []string {
	budget := "–"
	if o.goal.Budget != nil {
		budget = map[bool]string{true: "kept", false: "passed"}[o.kept()]
	}
	end := fmt.Sprintf("%.1f", o.took.Seconds())
	off := fmt.Sprintf("%+.1f", o.off())
	if o.trouble != "" {
		end, off = "not done", "–"
	}
	return []string{o.name, fmt.Sprint(o.tasks), fmt.Sprint(o.predicted.PeakCPUs), o.errs(),
		fmt.Sprintf("%.1f", time.Duration(o.predicted.Makespan).Seconds()), end, off,
		fmt.Sprintf("%.0f", o.predicted.CoreHours*3600), fmt.Sprintf("%.0f", o.held.Seconds()),
		fmt.Sprintf("%d/%d", o.added, o.dropped), budget, o.verdict()}
}

// String returns the outcome in one line, followed by details that do not fit into the table.
func (o outcome) String() string {
	text := strings.Join(o.cells(), " | ")
	if o.trouble != "" {
		text += "\n\t" + o.trouble
	}
	for _, said := range o.said {
		text += "\n\t" + said
	}
	return text
}

// plansReport returns the table of all outcomes, and a summary.
func plansReport(all []outcome) string {
	var b strings.Builder
	rows := [][]string{{"workflow", "tasks", "cpus", "errors", "predicted s", "taken s", "off %", "predicted cpu s",
		"held", "pilots +/−", "budget", "deadline"}}
	var exact, near, erring, kept, slack, met, missed, said int
	for _, o := range all {
		rows = append(rows, o.cells())
		if o.seed == 0 {
			exact++
			near += count(o.trouble == "" && max(o.off(), -o.off()) <= 10)
			continue
		}
		erring++
		kept += count(o.kept())
		if o.slack() >= 29.9 { // a deadline is in whole milliseconds
			slack++
			met += count(o.met())
		}
		if !o.met() {
			missed++
			said += count(o.late > 0 && o.late < time.Duration(o.goal.Deadline))
		}
	}
	table(&b, rows)
	fmt.Fprintf(&b, "\nWithin 10 %% of what was predicted, runtimes as estimated: %d of %d.\n", near, exact)
	fmt.Fprintf(&b, "With errors, the budget was kept: %d of %d; the deadline of plans with 30 %% slack was met: "+
		"%d of %d; a missed one was announced before: %d of %d.\n", kept, erring, met, slack, said, missed)
	return b.String()
}

// count returns 1 if the argument is true, otherwise 0.
func count(holds bool) int {
	if holds {
		return 1
	}
	return 0
}
