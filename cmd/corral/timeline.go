package main

import (
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/corral-pilot/corral"
)

// printTimeline draws the nine events of the timeline and the times between them.
func printTimeline(p *printer, events []corral.TimelineEvent) error {
	if len(events) == 0 {
		return nil
	}
	t := newTable(p, table.Row{"EVENT", "AT", "SINCE FIRST", "TIME"})
	at := map[string]time.Time{}
	for _, e := range events {
		at[e.Name] = e.At
		t.AppendRow(table.Row{e.Name, e.At.Local().Format("15:04:05.000"), span(e.At.Sub(events[0].At)), derived(e.Name, at)})
	}
	t.Render()
	return nil
}

// derived names the time that ends with this event (Juve 2012, fig. 2.5).
func derived(name string, at map[string]time.Time) string {
	job, phase := cutPhase(name)
	since := func(from, what string) string { return what + " " + span(at[name].Sub(at[job+from])) }
	switch {
	case job == "Glidein" && phase == "Started":
		return since("Submitted", "allocation")
	case job == "Glidein" && phase == "Finished" && !at["GlideinStarted"].IsZero():
		return since("Started", "runtime")
	case job == "Setup" && phase == "Finished":
		return since("Submitted", "setup")
	case job == "Cleanup" && phase == "Finished":
		return since("Submitted", "cleanup")
	}
	return ""
}

func cutPhase(name string) (job, phase string) {
	for _, phase := range []string{"Submitted", "Started", "Finished"} {
		if job, ok := strings.CutSuffix(name, phase); ok {
			return job, phase
		}
	}
	return name, ""
}
