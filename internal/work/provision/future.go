package provision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/store"
	"github.com/corral-pilot/corral/internal/work/admit"
	"github.com/corral-pilot/corral/plan"
)

// closed returns the periods, relative to now, in which all nodes of a queue are under maintenance. Batch systems do
// not start a job whose walltime would extend into a maintenance period, and a pilot requests more time than it is
// held. So each period begins earlier by the largest possible difference between these times.
func (f Facts) closed(q corral.SiteQueue, margin time.Duration, now time.Time) []plan.Span {
	if f.Site.Facts == nil {
		return nil
	}
	var all []plan.Span
	for _, m := range f.Site.Facts.Maintenance {
		if m.Queue == q.Name && m.Nodes >= q.Nodes && m.To.After(now) {
			all = append(all, closedFor(m.From, m.To, margin, now))
		}
	}
	return all
}

// closedFor returns the period in which no pilot is planned because of maintenance.
func closedFor(from, to time.Time, margin time.Duration, now time.Time) plan.Span {
	const shortest = 10*time.Minute + time.Minute // the shortest walltime, plus the most that rounding up adds
	return plan.Span{
		From: max(0, from.Sub(now)-shortest-margin).Truncate(time.Millisecond),
		To:   (to.Sub(now) + time.Millisecond).Truncate(time.Millisecond),
	}
}

// ClosedNow returns the periods, like those that the last survey of a site found, in which all nodes of a queue are
// reserved, as a look at the queue shows them now. ok is false if the look does not show nodes and reservations.
func ClosedNow(b corral.Backlog, margin time.Duration) (all []plan.Span, ok bool) {
	own := map[string]bool{}
	for _, n := range b.Nodes {
		if len(n.Queues) == 0 || slices.Contains(n.Queues, b.Queue) {
			own[n.Name] = true
		}
	}
	for _, r := range b.Reservations {
		if covers(r.Nodes, own) {
			all = append(all, closedFor(r.From, r.To, margin, b.At))
		}
	}
	return all, len(own) > 0 && b.Reserved
}

// covers reports whether names include all nodes.
func covers(names []string, nodes map[string]bool) bool {
	n := 0
	for _, name := range names {
		if nodes[name] {
			n++
		}
	}
	return n >= len(nodes)
}

// ahead describes a site's known maintenance and allowance as part of a plan's reasons, and says which of the two the
// site does not report.
func (f Facts) ahead(now time.Time) (said []string) {
	facts := f.Site.Facts
	if facts == nil {
		return nil
	}
	for _, m := range facts.Maintenance {
		i := slices.IndexFunc(f.queues(), func(q corral.SiteQueue) bool { return q.Name == m.Queue })
		if i < 0 || !m.To.After(now) {
			continue
		}
		effect := "no pilot is planned across it"
		if n := f.queues()[i].Nodes; m.Nodes < n {
			effect = fmt.Sprintf("%d of %d nodes; the plan uses the others as if they were all", m.Nodes, n)
		}
		said = append(said, fmt.Sprintf("queue %s at site %s has maintenance %s from %s to %s: %s", m.Queue,
			f.Site.Name, m.Name, m.From.Format(time.RFC3339), m.To.Format(time.RFC3339), effect))
	}
	if a := facts.Allowance; a != nil {
		said = append(said, fmt.Sprintf("account %s at site %s had %d of %d cpu-hours left on %s", a.Account,
			f.Site.Name, a.Left()/60, a.CPUMinutes/60, facts.At.Format(time.RFC3339)))
	}
	for _, note := range facts.Notes {
		if strings.Contains(note, "account") || strings.Contains(note, "maintenance") {
			said = append(said, fmt.Sprintf("site %s: %s; the prediction uses only its waits", f.Site.Name, note))
		}
	}
	return said
}

// CheckTime refuses a plan whose deadline is an instant, and which begins too late to end by then.
func CheckTime(row corral.Plan, p *plan.Plan) error {
	at, end := p.Goal.DeadlineAt, row.BeganAt.Add(time.Duration(p.Makespan))
	if at.IsZero() || !end.After(at) {
		return nil
	}
	return corral.ErrorAt(corral.Unsatisfiable, "plan", "it would end at %s if it began now, after its deadline at "+
		"%s: make the plan again", end.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339))
}

// CheckOpen refuses a pilot that would be held during maintenance that its site has announced. It is called within the
// transaction that begins p, the plan of a row: the plan may have been made before the announcement, or may begin too
// late to end before the maintenance.
func CheckOpen(tx *store.Tx, row corral.Plan, p *plan.Plan) error {
	for i, q := range p.Pilots {
		site, err := admit.SiteOfPlan(tx, row.Sites, q.Site)
		if err != nil {
			return err
		}
		f, held := Facts{Site: site}, plan.Span{From: time.Duration(q.Start), To: time.Duration(q.End)}
		for _, queue := range f.queues() {
			for _, c := range f.closed(queue, 0, row.BeganAt) {
				if queue.Name == q.Queue && c.Overlaps(held) {
					return corral.ErrorAt(corral.Conflict, "plan", "pilot %d would be at site %s from +%s to +%s, and "+
						"its maintenance ends at +%s: make the plan again", i, q.Site, q.Start, q.End, c.To)
				}
			}
		}
	}
	return nil
}
