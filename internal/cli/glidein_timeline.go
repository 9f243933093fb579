package cli

import (
	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/corral-pilot/corral"
)

// printTimeline prints the events of the timeline and the times between them.
func (v glideinVerbs) printTimeline(events []corral.TimelineEvent) {
	if len(events) == 0 {
		return
	}
	phases := map[corral.TimelineEvent]string{} // phases by the event that ends them
	for _, ph := range corral.Phases(events) {
		phases[ph.To] = ph.Name + " " + span(ph.Took())
	}
	t := newTable(table.Row{"EVENT", "AT", "SINCE FIRST", "TOOK"})
	for _, e := range events {
		t.AppendRow(table.Row{e.Name, e.At.Local().Format("15:04:05.000"), span(e.At.Sub(events[0].At)), phases[e]})
	}
	v.render(t)
}
