package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

func glideinCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name:  "glidein",
		Usage: "requests for processors at a site",
		Subcommands: []*cli.Command{
			createGlideinCommand(p),
			{
				Name: "list", Usage: "list glideins", Description: "Example: corral glidein list -l project=lambda",
				Flags:  []cli.Flag{allFlag, filterFlag, siteFlag, clusterFlag},
				Action: func(c *cli.Context) error { return listGlideins(c, p) },
			},
			glideinVerb("show", "show a glidein and its attempts", nil, func(c *cli.Context, cl *api.Client, id corral.GlideinID) error {
				g, err := cl.Glidein(c.Context, id)
				if err != nil {
					return err
				}
				return showGlidein(p, g)
			}),
			glideinVerb("wait", "wait for a glidein's workers, or for states", []cli.Flag{
				&cli.StringFlag{Name: "for", Value: api.UntilWorkers, Usage: "what to wait for: workers, or states separated by commas"}, timeoutFlag,
			}, func(c *cli.Context, cl *api.Client, id corral.GlideinID) error {
				g, err := cl.WaitGlidein(c.Context, id, c.String("for"), c.Duration("timeout"))
				if err != nil {
					return err
				}
				return show(p, g, glideinID, glideinColumns)
			}),
			glideinVerb("history", "what happened to a glidein and its attempts", nil, func(c *cli.Context, cl *api.Client, id corral.GlideinID) error {
				return glideinHistory(c, p, cl, id)
			}),
			glideinVerb("log", "what a pilot wrote", []cli.Flag{
				&cli.IntFlag{Name: "attempt", Usage: "of attempt `N` (default: the last)"},
				&cli.StringFlag{Name: "file", Value: "stderr", Usage: "stdout, stderr or report.json"},
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

var (
	siteFlag    = &cli.StringFlag{Name: "site", Aliases: []string{"s"}, Usage: "`SITE`, by name or id"}
	clusterFlag = &cli.StringFlag{Name: "cluster", Aliases: []string{"c"}, EnvVars: []string{"CORRAL_CLUSTER"}, Usage: "`CLUSTER`, by name or id (default: default)"}
)

func createGlideinCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "create", Usage: "request hosts × cpus at a site",
		Description: "Example: corral glidein create --site local --hosts 2 --cpus 1 --walltime 1h --idle 5m --wait\n" +
			"--wait returns when the cpus of its registered workers sum to hosts × cpus.",
		Flags: []cli.Flag{
			siteFlag, clusterFlag,
			&cli.IntFlag{Name: "hosts", Value: 1, Usage: "hosts; each runs one worker"},
			&cli.IntFlag{Name: "cpus", Value: 1, Usage: "cpus of each host"},
			&cli.StringFlag{Name: "memory", Usage: "memory of each host, as 4GiB (default: its share of the machine)"},
			&cli.IntFlag{Name: "gpus", Usage: "GPUs of each host"},
			&cli.DurationFlag{Name: "walltime", Value: time.Hour, Usage: "for how long, at most"},
			&cli.DurationFlag{Name: "idle", Usage: "leave after `D` without work (0: never)"},
			&cli.StringFlag{Name: "resubmit", Value: "never", Usage: "when the walltime is over: never, N (times), until=TIME, forever"},
			&cli.IntFlag{Name: "retries", Value: 3, Usage: "attempts in a row that may be lost or fail in a way that may pass"},
			&cli.DurationFlag{Name: "overlap", Usage: "submit the next attempt `D` before the last one ends"},
			&cli.StringFlag{Name: "not-before", Usage: "submit at `TIME` (RFC 3339) or later"},
			&cli.StringFlag{Name: "queue", Usage: "queue or partition of the batch system"},
			&cli.StringFlag{Name: "account", Usage: "account to charge"},
			&cli.StringSliceFlag{Name: "site-opt", Usage: "`LINE` for the batch system, verbatim, may be repeated"},
			&cli.StringFlag{Name: "broker", Value: "auto", Usage: "auto, none, ccb or relay"},
			labelFlag, keyFlag,
			&cli.BoolFlag{Name: "wait", Usage: "return when its workers are registered"}, timeoutFlag,
		},
		Action: func(c *cli.Context) error { return createGlidein(c, p) },
	}
}

func removeGlideinCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "remove", Usage: "let glideins go", ArgsUsage: "[ID]…",
		Description: "Example: corral glidein remove 7 --wait\nWorkers finish the tasks they run; with --now they drop them.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "now", Usage: "do not let tasks finish"},
			&cli.BoolFlag{Name: "wait", Usage: "return when nothing of it is left"}, timeoutFlag, filterFlag,
		},
		Action: func(c *cli.Context) error { return removeGlideins(c, p) },
	}
}

func glideinVerb(name, usage string, flags []cli.Flag, do func(*cli.Context, *api.Client, corral.GlideinID) error) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: "ID", Flags: flags,
		Description: "Example: corral glidein " + name + " 7",
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

func newGlidein(c *cli.Context) (api.NewGlidein, error) {
	n := api.NewGlidein{
		Site: c.String("site"), Cluster: c.String("cluster"),
		Hosts: c.Int("hosts"), CPUs: c.Int("cpus"), GPUs: c.Int("gpus"),
		Walltime: corral.Seconds(c.Duration("walltime")), Idle: corral.Seconds(c.Duration("idle")), Overlap: corral.Seconds(c.Duration("overlap")),
		Resubmit: c.String("resubmit"), Retries: c.Int("retries"),
		Queue: c.String("queue"), Account: c.String("account"), SiteOptions: c.StringSlice("site-opt"), Broker: c.String("broker"),
	}
	if n.Site == "" {
		return n, corral.ErrorAt(corral.Invalid, "--site", "is missing")
	}
	var err error
	if n.MemoryMiB, err = parseMiB("--memory", c.String("memory")); err != nil {
		return n, err
	}
	if n.NotBefore, err = parseTime("--not-before", c.String("not-before")); err != nil {
		return n, err
	}
	n.Labels, err = parseLabels(c, "label")
	return n, err
}

func createGlidein(c *cli.Context, p *printer) error {
	if err := noArguments(c); err != nil {
		return err
	}
	n, err := newGlidein(c)
	if err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	g, err := cl.CreateGlidein(c.Context, n, c.String("key"))
	if err != nil {
		return err
	}
	if c.Bool("wait") {
		g, err = waitForWorkers(c, p, cl, g)
		if err != nil {
			p.say("glidein %d stays: see `corral glidein history %d`, or `corral glidein remove %d`", g.ID, g.ID, g.ID)
			return err
		}
	}
	return show(p, g, glideinID, glideinColumns)
}

func waitForWorkers(c *cli.Context, p *printer, cl *api.Client, g corral.Glidein) (corral.Glidein, error) {
	p.say("glidein %d: waiting for %d worker(s) of %d cpu(s)", g.ID, g.Hosts, g.CPUs)
	return cl.WaitGlidein(c.Context, g.ID, api.UntilWorkers, c.Duration("timeout"))
}

func listGlideins(c *cli.Context, p *printer) error {
	if err := noArguments(c); err != nil {
		return err
	}
	f := api.Filter{All: c.Bool("all"), Site: c.String("site"), Cluster: c.String("cluster")}
	var err error
	if f.Labels, err = parseLabels(c, "l"); err != nil {
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
	return list(p, glideins, glideinID, glideinColumns)
}

func showGlidein(p *printer, g corral.Glidein) error {
	if err := show(p, g, glideinID, glideinColumns); err != nil || p.quiet || p.format != "table" {
		return err
	}
	fmt.Fprintln(p.out)
	return list(p, g.Attempts, func(j corral.Job) string { return j.Tag }, attemptColumns)
}

// glideinHistory prints the nine events with the times derived from them, then every entry.
func glideinHistory(c *cli.Context, p *printer, cl *api.Client, id corral.GlideinID) error {
	entries, err := cl.GlideinHistory(c.Context, id)
	if err != nil {
		return err
	}
	if p.format == "table" && !p.quiet {
		events, err := cl.GlideinTimeline(c.Context, id)
		if err != nil {
			return err
		}
		if err := printTimeline(p, events); err != nil {
			return err
		}
		fmt.Fprintln(p.out)
	}
	return list(p, entries, entryID, entryColumns)
}

func removeGlideins(c *cli.Context, p *printer) error {
	ids, labels, err := namedGlideins(c)
	if err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	if len(labels) > 0 {
		if ids, err = labelledGlideins(c.Context, cl, labels); err != nil {
			return err
		}
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
		for i, g := range removed {
			if removed[i], err = cl.WaitGlidein(c.Context, g.ID, string(corral.GlideinDeleted), c.Duration("timeout")); err != nil {
				return err
			}
		}
	}
	return list(p, removed, glideinID, glideinColumns)
}

// namedGlideins reads which glideins the command line names: by id, or by labels.
func namedGlideins(c *cli.Context) (ids []corral.GlideinID, labels map[string]string, err error) {
	if labels, err = parseLabels(c, "l"); err != nil {
		return nil, nil, err
	}
	if (c.NArg() > 0) == (len(labels) > 0) {
		return nil, nil, corral.Errorf(corral.Invalid, "want either glidein ids or -l k=v; see `%s --help`", c.Command.HelpName)
	}
	for _, arg := range c.Args().Slice() {
		id, err := parseID[corral.GlideinID]("glidein", arg)
		if err != nil {
			return nil, nil, err
		}
		ids = append(ids, id)
	}
	return ids, labels, nil
}

func labelledGlideins(ctx context.Context, cl *api.Client, labels map[string]string) (ids []corral.GlideinID, err error) {
	glideins, err := cl.Glideins(ctx, api.Filter{Labels: labels})
	for _, g := range glideins {
		ids = append(ids, g.ID)
	}
	return ids, err
}

func glideinID(g corral.Glidein) string { return strconv.FormatInt(int64(g.ID), 10) }

var glideinColumns = []column[corral.Glidein]{
	{"id", func(g corral.Glidein) any { return g.ID }},
	{"site", func(g corral.Glidein) any { return g.SiteName }},
	{"cluster", func(g corral.Glidein) any { return g.ClusterName }},
	{"shape", func(g corral.Glidein) any { return fmt.Sprintf("%d×%d", g.Hosts, g.CPUs) }},
	{"memory", func(g corral.Glidein) any { return fmt.Sprintf("%d MiB", g.MemoryMiB) }},
	{"walltime", func(g corral.Glidein) any { return time.Duration(g.Walltime) }},
	{"resubmit", func(g corral.Glidein) any { return g.Resubmit }},
	{"state", func(g corral.Glidein) any { return shownState(g) }},
	{"workers", func(g corral.Glidein) any { return fmt.Sprintf("%d/%d", g.WorkersNow, g.Hosts) }},
	{"attempts", func(g corral.Glidein) any { return len(g.Attempts) }},
	{"labels", func(g corral.Glidein) any { return labels(g.Labels) }},
	{"reason", func(g corral.Glidein) any { return g.Reason }},
}

// shownState is ACTIVE's furthest attempt's state, else the glidein's own.
func shownState(g corral.Glidein) string {
	if g.State != corral.GlideinActive {
		return string(g.State)
	}
	fields := strings.Fields(g.Reason) // "attempt 2 RUNNING"
	return fields[len(fields)-1]
}

var attemptColumns = []column[corral.Job]{
	{"attempt", func(j corral.Job) any { return j.Number }},
	{"tag", func(j corral.Job) any { return j.Tag }},
	{"site job", func(j corral.Job) any { return j.SiteJobID }},
	{"state", func(j corral.Job) any { return j.State }},
	{"outcome", func(j corral.Job) any { return j.Outcome }},
	{"submitted", func(j corral.Job) any { return when(j.SubmittedAt) }},
	{"started", func(j corral.Job) any { return when(j.StartedAt) }},
	{"ended", func(j corral.Job) any { return when(j.EndedAt) }},
	{"workers", func(j corral.Job) any { return j.Workers }},
	{"reason", func(j corral.Job) any { return j.Reason }},
}
