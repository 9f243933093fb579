package cli

// The verbs for glideins; the verb that creates them is in glidein_create.go. wait and remove accept several ids, or
// labels, so that a script that created a dozen glideins need not store their ids.

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/progress"
)

var glideins = noun[corral.GlideinID]{"glidein", idKey[corral.GlideinID], idsOfAll((*api.Client).Glideins,
	func(g corral.Glidein) corral.GlideinID { return g.ID })}

// glideinVerbs are the verbs for glideins.
type glideinVerbs struct{ *printer }

// command returns the noun with its verbs.
func (v glideinVerbs) command() *cli.Command {
	return &cli.Command{
		Name: "glidein", Category: resources,
		Subcommands: []*cli.Command{
			v.createCommand(),
			glideinTable.listVerb(v.printer, (*api.Client).Glideins, filterFlag(), siteFlag(), clusterFlag()),
			glideins.verb("show", v.show),
			glideins.several("wait",
				v.wait, untilFlag(), filterFlag(), timeoutFlag()),
			glideins.verb("history", v.history),
			glideins.verb("log", func(c *cli.Context, cl *api.Client, id corral.GlideinID) error {
				b, err := cl.GlideinLog(c.Context, id, c.Int("attempt"), c.String("file"))
				if err == nil {
					_, err = v.out.Write(b)
				}
				return err
			},
				&cli.IntFlag{Name: "attempt", Usage: "of attempt `N` (default: the last)"},
				&cli.StringFlag{Name: "file", Value: "stderr", Usage: "`FILE`: stdout, stderr or report.json"}),
			glideins.several("remove",
				v.remove, &cli.BoolFlag{Name: "now", Usage: "do not wait for tasks to finish"},
				waitFlag("nothing of it is left"), timeoutFlag(), filterFlag()),
		},
	}
}

// untilFlag selects the condition to wait for.
func untilFlag() cli.Flag {
	return &cli.StringFlag{Name: "for", Value: api.UntilWorkers, Usage: "wait for `WHAT`: workers, " +
		"or states separated by commas (QUEUED, RUNNING, FINISHED, FAILED, …)",
		Action: func(_ *cli.Context, until string) error {
			_, err := api.ParseUntilGlidein(until)
			return err
		}}
}

// show prints a glidein and, in a table below, its attempts. For a glidein of an HTCondor pool it adds from the history
// how the pool reaches the workers.
func (v glideinVerbs) show(c *cli.Context, cl *api.Client, id corral.GlideinID) error {
	g, err := cl.Glidein(c.Context, id)
	if err != nil {
		return err
	}
	table := glideinTable
	if v.forPeople() && g.Broker != "" {
		entries, err := cl.GlideinHistory(c.Context, id)
		if err != nil {
			return err
		}
		way := column[corral.Glidein]{"way", func(corral.Glidein) any { return brokerReason(entries) }}
		table.details = slices.Insert(slices.Clone(table.details), 0, way)
	}
	if err := table.show(v.printer, g); err != nil || !v.forPeople() || len(g.Attempts) == 0 {
		return err
	}
	fmt.Fprintln(v.out)
	return attemptTable.list(v.printer, g.Attempts)
}

// brokerReason returns how the pool reaches the workers, and the reason, as reported by the latest attempt.
func brokerReason(history []corral.Entry) string {
	for _, e := range slices.Backward(history) {
		if e.Object == corral.ObjectJob && e.Event == "broker" {
			return e.Reason
		}
	}
	return ""
}

// history prints the events of the timeline with the times between them, then every entry of the history.
func (v glideinVerbs) history(c *cli.Context, cl *api.Client, id corral.GlideinID) error {
	entries, err := cl.GlideinHistory(c.Context, id)
	if err != nil {
		return err
	}
	if v.forPeople() {
		events, err := cl.GlideinTimeline(c.Context, id)
		if err != nil {
			return err
		}
		v.printTimeline(events)
		fmt.Fprintln(v.out)
	}
	return entryTable.list(v.printer, entries)
}

// wait fails with the first glidein that can no longer reach the condition.
func (v glideinVerbs) wait(c *cli.Context, cl *api.Client, which choice[corral.GlideinID]) error {
	if len(which.ids) == 0 {
		return which.none()
	}
	glideins, err := v.awaitAll(c, cl, which.ids, c.String("for"))
	if err != nil {
		return err
	}
	return glideinTable.showEach(v.printer, glideins, which.alone())
}

// remove requests all removals before it waits for the first, so that the glideins drain in parallel.
func (v glideinVerbs) remove(c *cli.Context, cl *api.Client, which choice[corral.GlideinID]) error {
	removed := []corral.Glidein{}
	for _, id := range which.ids {
		g, err := cl.RemoveGlidein(c.Context, id, c.Bool("now"))
		if err != nil {
			return err
		}
		removed = append(removed, g)
	}
	if c.Bool("wait") {
		var err error
		if removed, err = v.awaitAll(c, cl, which.ids, string(corral.GlideinDeleted)); err != nil {
			return err
		}
	}
	return glideinTable.showEach(v.printer, removed, which.alone())
}

// awaitAll shows one glidein after the other until each meets the condition; the timeout applies to all of them
// together. The order does not matter, because the last glidein determines when the wait is over.
func (v glideinVerbs) awaitAll(
	c *cli.Context, cl *api.Client, ids []corral.GlideinID, until string,
) (glideins []corral.Glidein, err error) {
	left := countDown(c.Duration("timeout"))
	for _, id := range ids {
		g, err := v.follow(c.Context, cl, id, progress.Condition{Until: until, Timeout: left()})
		if err != nil {
			return nil, objectError{fmt.Sprintf("/v1/glideins/%d", id), err}
		}
		glideins = append(glideins, g)
	}
	return glideins, nil
}

// follow waits for a glidein and shows its progress in the meantime.
func (p *printer) follow(
	ctx context.Context, cl *api.Client, id corral.GlideinID, wait progress.Condition,
) (corral.Glidein, error) {
	view := progress.NewGlideinView(p.err, lookOf(p.err))
	if p.quiet {
		view = progress.NewGlideinView(io.Discard, progress.Look{})
	}
	return progress.Glidein(ctx, cl, id, wait, view)
}

// glideinTable shows the state of the most advanced attempt instead of ACTIVE, which provides little information.
var glideinTable = listing[corral.Glidein]{
	owner: func(g corral.Glidein) string { return g.Owner },
	id:    func(g corral.Glidein) string { return strconv.FormatInt(int64(g.ID), 10) },
	none:  "no glideins; request one with `corral glidein create --site local`",
	columns: []column[corral.Glidein]{
		{"id", func(g corral.Glidein) any { return g.ID }},
		{"site", func(g corral.Glidein) any { return g.SiteName }},
		{"cluster", func(g corral.Glidein) any { return g.ClusterName }},
		{"hosts×cpus", func(g corral.Glidein) any { return fmt.Sprintf("%d×%d", g.Hosts, g.CPUs) }},
		{"walltime", func(g corral.Glidein) any { return short(g.Walltime.String()) }},
		{"state", func(g corral.Glidein) any { state, _ := progress.Shown(g, time.Now()); return state }},
		{"workers", func(g corral.Glidein) any { return fmt.Sprintf("%d of %d", g.WorkersNow, g.Hosts) }},
		{"broker", func(g corral.Glidein) any { return g.Broker }},
		{"slots", func(g corral.Glidein) any { return g.Slots }},
		{"labels", func(g corral.Glidein) any { return labels(g.Labels) }},
		{"reason", func(g corral.Glidein) any { _, reason := progress.Shown(g, time.Now()); return reason }},
	},
	details: []column[corral.Glidein]{
		{"memory", func(g corral.Glidein) any {
			if g.MemoryMiB == 0 {
				return "" // the site's default
			}
			return size(g.MemoryMiB) + " each host"
		}},
		{"next", func(g corral.Glidein) any { return outlookText(g.Outlook) }},
		{"attempts", func(g corral.Glidein) any { return len(g.Attempts) }},
		{"resubmit", func(g corral.Glidein) any { return g.Resubmit }},
		{"leaves idle", func(g corral.Glidein) any { return idleText(g) }},
		{"overlap", func(g corral.Glidein) any { return unless(g.Overlap) }},
		{"waits in queue", func(g corral.Glidein) any { return "at most " + short(g.QueueLimit.String()) }},
		{"ccb", func(g corral.Glidein) any { return strings.Join(g.CCB, ", ") }},
		{"not before", func(g corral.Glidein) any { return when(g.NotBefore) }},
		{"follows", func(g corral.Glidein) any { return unless(g.Follows) }},
		{"created", func(g corral.Glidein) any { return when(g.CreatedAt) }},
	},
}

// outlookText describes in one sentence the next step of a glidein, and the reason for that step.
func outlookText(o *corral.Outlook) string {
	if o == nil {
		return ""
	}
	at := func(word string) string {
		if o.At.IsZero() {
			return ""
		}
		return " " + word + " " + when(o.At)
	}
	switch o.Next {
	case corral.NextSubmit:
		return fmt.Sprintf("attempt %d is submitted%s: %s", o.Attempt, at("not before"), o.Why)
	case corral.NextStart:
		return fmt.Sprintf("attempt %d starts%s: %s", o.Attempt, at("before"), o.Why)
	case corral.NextLeave:
		if o.Attempt > 0 {
			return fmt.Sprintf("attempt %d leaves: %s", o.Attempt, o.Why)
		}
		return "it leaves: " + o.Why
	case corral.NextFinish:
		return fmt.Sprintf("it is over%s: %s", at("at"), o.Why)
	}
	return "" // the state shows that the glidein is over
}

func idleText(g corral.Glidein) string {
	switch {
	case g.Idle == 0:
		return ""
	case g.MinStay > 0:
		return fmt.Sprintf("after %s, but not before it has run for %s", short(g.Idle.String()),
			short(g.MinStay.String()))
	}
	return "after " + short(g.Idle.String())
}

// attemptTable shows the pilot jobs of one glidein, the oldest first.
var attemptTable = listing[corral.Job]{
	id: func(j corral.Job) string { return j.Tag },
	columns: []column[corral.Job]{
		{"attempt", func(j corral.Job) any { return j.Number }},
		{"site job", func(j corral.Job) any { return j.SiteJobID }},
		{"state", func(j corral.Job) any { return j.State }},
		{"outcome", func(j corral.Job) any { return j.Outcome }},
		{"submitted", func(j corral.Job) any { return when(j.SubmittedAt) }},
		{"started", func(j corral.Job) any { return when(j.StartedAt) }},
		{"ended", func(j corral.Job) any { return when(j.EndedAt) }},
		{"workers", func(j corral.Job) any { return j.Workers }},
		{"reason", func(j corral.Job) any { return j.Reason }},
	},
}
