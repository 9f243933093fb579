package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/follow"
)

func glideinCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "glidein", Category: resources,
		Usage:       "requests for processors at a site",
		Description: explained("A glidein asks a site's batch system for hosts; a pilot job holds them and runs one worker on each, which joins a personal cluster.", "corral glidein create --site local --hosts 2 --wait"),
		Subcommands: []*cli.Command{
			createGlideinCommand(p),
			{
				Name: "list", Usage: "list glideins", Description: explained("", "corral glidein list -l project=lambda"),
				Flags:  []cli.Flag{allFlag(), filterFlag(), siteFlag(), clusterFlag()},
				Action: func(c *cli.Context) error { return listGlideins(c, p) },
			},
			glideinVerb("show", "show a glidein and its attempts", "corral glidein show 7", nil, func(c *cli.Context, cl *api.Client, id corral.GlideinID) error {
				g, err := cl.Glidein(c.Context, id)
				if err != nil {
					return err
				}
				return showGlidein(p, g)
			}),
			waitGlideinCommand(p),
			glideinVerb("history", "what happened to a glidein and its attempts", "corral glidein history 7", nil, func(c *cli.Context, cl *api.Client, id corral.GlideinID) error {
				return glideinHistory(c, p, cl, id)
			}),
			glideinVerb("log", "what a pilot wrote", "corral glidein log 7 --attempt 1 --file report.json", []cli.Flag{
				&cli.IntFlag{Name: "attempt", Usage: "of attempt `N` (default: the last)"},
				&cli.StringFlag{Name: "file", Value: "stderr", Usage: "`FILE`: stdout, stderr or report.json"},
			}, func(c *cli.Context, cl *api.Client, id corral.GlideinID) error {
				b, err := cl.GlideinLog(c.Context, id, c.Int("attempt"), c.String("file"))
				if err == nil {
					_, err = p.out.Write(b)
				}
				return err
			}),
			removeGlideinCommand(p),
		},
	}
}

func waitGlideinCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "wait", Usage: "wait for the workers of glideins, or for states", ArgsUsage: "ID…",
		Description: explained("A glidein that is over before it has what is waited for ends the wait with exit code 1.",
			"corral glidein wait 7 --timeout 10m\ncorral glidein wait -l project=lambda --for FINISHED,FAILED"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "for", Value: api.UntilWorkers, Usage: "wait for `WHAT`: workers, or states separated by commas (QUEUED, RUNNING, FINISHED, FAILED, …)"},
			filterFlag(), timeoutFlag(),
		},
		Action: func(c *cli.Context) error { return waitGlideins(c, p) },
	}
}

func removeGlideinCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "remove", Usage: "let glideins go", ArgsUsage: "ID…",
		Description: explained("Workers finish the tasks that they run; with --now they drop them, and the tasks run again elsewhere. Repeating it is harmless.",
			"corral glidein remove 7 --wait\ncorral glidein remove -l project=lambda"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "now", Usage: "do not let tasks finish"},
			waitFlag("nothing of it is left"), timeoutFlag(), filterFlag(),
		},
		Action: func(c *cli.Context) error { return removeGlideins(c, p) },
	}
}

// glideinVerb is a command that takes one glidein.
func glideinVerb(name, usage, example string, flags []cli.Flag, do func(*cli.Context, *api.Client, corral.GlideinID) error) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: "ID", Flags: flags,
		Description: explained("", example),
		Action: func(c *cli.Context) error {
			arg, err := argument(c, "glidein id")
			if err != nil {
				return err
			}
			id, err := parseID[corral.GlideinID]("glidein", arg)
			if err != nil {
				return err
			}
			cl, err := connect(c)
			if err != nil {
				return err
			}
			return do(c, cl, id)
		},
	}
}

func listGlideins(c *cli.Context, p *printer) error {
	if err := noArguments(c); err != nil {
		return err
	}
	f := api.Filter{All: c.Bool("all"), Site: c.String("site"), Cluster: c.String("cluster")}
	var err error
	if f.Labels, err = parseLabels("-l", c.StringSlice("l")); err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	glideins, err := cl.Glideins(c.Context, f)
	if err != nil {
		return err
	}
	return list(p, glideins, glideinTable)
}

func showGlidein(p *printer, g corral.Glidein) error {
	if err := show(p, g, glideinTable); err != nil || !p.forPeople() || len(g.Attempts) == 0 {
		return err
	}
	fmt.Fprintln(p.out)
	return list(p, g.Attempts, attemptTable)
}

// glideinHistory prints the nine events with the times derived from them, then every entry.
func glideinHistory(c *cli.Context, p *printer, cl *api.Client, id corral.GlideinID) error {
	entries, err := cl.GlideinHistory(c.Context, id)
	if err != nil {
		return err
	}
	if p.forPeople() {
		events, err := cl.GlideinTimeline(c.Context, id)
		if err != nil {
			return err
		}
		printTimeline(p, events)
		fmt.Fprintln(p.out)
	}
	return list(p, entries, entryTable)
}

func waitGlideins(c *cli.Context, p *printer) error {
	which, err := chosen[corral.GlideinID](c, "glidein")
	if err != nil {
		return err
	}
	d, err := timeout(c, true)
	if err != nil {
		return err
	}
	if _, err := api.ParseUntilGlidein(c.String("for")); err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	ids, err := glideinsOf(c, cl, which)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return corral.Errorf(corral.NotFound, "no glidein has the label %s", labels(which.labels))
	}
	glideins, err := awaitGlideins(c, p, cl, ids, follow.Wait{Until: c.String("for"), Timeout: d})
	if err != nil {
		return err
	}
	return showEach(p, glideins, len(which.labels) == 0, glideinTable)
}

func removeGlideins(c *cli.Context, p *printer) error {
	which, err := chosen[corral.GlideinID](c, "glidein")
	if err != nil {
		return err
	}
	d, err := timeout(c, c.Bool("wait"))
	if err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	ids, err := glideinsOf(c, cl, which)
	if err != nil {
		return err
	}
	removed := []corral.Glidein{}
	for _, id := range ids {
		g, err := cl.RemoveGlidein(c.Context, id, c.Bool("now"))
		if err != nil {
			return err
		}
		removed = append(removed, g)
	}
	if c.Bool("wait") {
		if removed, err = awaitGlideins(c, p, cl, ids, follow.Wait{Until: string(corral.GlideinDeleted), Timeout: d}); err != nil {
			return err
		}
	}
	return showEach(p, removed, len(which.labels) == 0, glideinTable)
}

// awaitGlideins shows one glidein after the other until each has what is waited for; the timeout is for
// all of them.
func awaitGlideins(c *cli.Context, p *printer, cl *api.Client, ids []corral.GlideinID, wait follow.Wait) ([]corral.Glidein, error) {
	left := countDown(wait.Timeout)
	glideins := []corral.Glidein{}
	for _, id := range ids {
		wait.Timeout = left()
		g, err := p.follow(c.Context, cl, id, wait)
		if err != nil {
			return nil, about{fmt.Sprintf("/v1/glideins/%d", id), err}
		}
		glideins = append(glideins, g)
	}
	return glideins, nil
}

// follow waits for a glidein and shows it meanwhile.
func (p *printer) follow(ctx context.Context, cl *api.Client, id corral.GlideinID, wait follow.Wait) (corral.Glidein, error) {
	if p.quiet {
		return follow.Glidein(ctx, cl, id, wait, follow.NewGlideinView(io.Discard, follow.Look{}))
	}
	return follow.Glidein(ctx, cl, id, wait, follow.NewGlideinView(p.err, lookOf(p.err)))
}

// glideinsOf returns the glideins that were chosen; by labels it may be none.
func glideinsOf(c *cli.Context, cl *api.Client, which choice[corral.GlideinID]) (ids []corral.GlideinID, err error) {
	if len(which.labels) == 0 {
		return which.ids, nil
	}
	glideins, err := cl.Glideins(c.Context, api.Filter{Labels: which.labels})
	for _, g := range glideins {
		ids = append(ids, g.ID)
	}
	return ids, err
}

var glideinTable = listing[corral.Glidein]{
	id:   func(g corral.Glidein) string { return strconv.FormatInt(int64(g.ID), 10) },
	none: "no glideins; ask for one with `corral glidein create --site local`",
	columns: []column[corral.Glidein]{
		{"id", func(g corral.Glidein) any { return g.ID }},
		{"site", func(g corral.Glidein) any { return g.SiteName }},
		{"cluster", func(g corral.Glidein) any { return g.ClusterName }},
		{"hosts×cpus", func(g corral.Glidein) any { return fmt.Sprintf("%d×%d", g.Hosts, g.CPUs) }},
		{"walltime", func(g corral.Glidein) any { return short(g.Walltime.String()) }},
		{"state", func(g corral.Glidein) any { state, _ := g.Shown(); return state }},
		{"workers", func(g corral.Glidein) any { return fmt.Sprintf("%d of %d", g.WorkersNow, g.Hosts) }},
		{"broker", func(g corral.Glidein) any { return g.Broker }},
		{"slots", func(g corral.Glidein) any { return g.Slots }},
		{"labels", func(g corral.Glidein) any { return labels(g.Labels) }},
		{"reason", func(g corral.Glidein) any { _, reason := g.Shown(); return reason }},
	},
	details: []column[corral.Glidein]{
		{"memory", func(g corral.Glidein) any {
			if g.MemoryMiB == 0 {
				return "" // what the site gives
			}
			return size(g.MemoryMiB) + " each host"
		}},
		{"attempts", func(g corral.Glidein) any { return len(g.Attempts) }},
		{"resubmit", func(g corral.Glidein) any { return g.Resubmit }},
		{"leaves idle", func(g corral.Glidein) any { return after(g.Idle) }},
		{"overlap", func(g corral.Glidein) any { return unless(g.Overlap) }},
		{"waits in queue", func(g corral.Glidein) any { return "at most " + short(g.QueueLimit.String()) }},
		{"ccb", func(g corral.Glidein) any { return strings.Join(g.CCB, ", ") }},
		{"not before", func(g corral.Glidein) any { return when(g.NotBefore) }},
		{"created", func(g corral.Glidein) any { return when(g.CreatedAt) }},
	},
}

func after(d corral.Seconds) string {
	if d == 0 {
		return ""
	}
	return "after " + short(d.String())
}

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
