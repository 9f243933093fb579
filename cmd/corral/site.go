package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

func siteCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "site", Category: resources, Usage: "places that can run batch jobs",
		Description: explained("A site is a contact (how to reach it) and a batch system. Its setup job installs the worker package there, its cleanup job removes all of it.", "corral site show local"),
		Subcommands: []*cli.Command{
			createSiteCommand(p),
			setSiteCommand(p),
			loginSiteCommand(p),
			{
				Name: "list", Usage: "list sites", Description: explained("", "corral site list -o json"),
				Flags:  []cli.Flag{allFlag()},
				Action: func(c *cli.Context) error { return listSites(c, p) },
			},
			siteVerb("show", "show a site", "corral site show local", func(c *cli.Context, cl *api.Client, ref string) error {
				s, err := cl.Site(c.Context, ref)
				if err != nil {
					return err
				}
				return showSite(p, s)
			}),
			siteVerb("history", "what happened to a site, and when", "corral site history local", func(c *cli.Context, cl *api.Client, ref string) error {
				entries, err := cl.SiteHistory(c.Context, ref)
				if err != nil {
					return err
				}
				return list(p, entries, entryTable)
			}),
			siteVerb("waits", "how long attempts waited in a site's queues", "corral site waits hpc -o json", func(c *cli.Context, cl *api.Client, ref string) error {
				waits, err := cl.SiteWaits(c.Context, ref)
				if err != nil {
					return err
				}
				return list(p, waits, waitsTable)
			}),
			probeSiteCommand(p),
			{
				Name: "forgive", Usage: "have attempts avoid nodes of a site no more", ArgsUsage: "SITE [NODE]…",
				Description: explained("A node on which one attempt after the other failed is avoided for a day, where the batch system can do that; `site show` lists those. What failed so far on the nodes that are named, or on all, is forgotten. Attempts that wait in the queue already keep off them still.",
					"corral site forgive hpc node17\ncorral site forgive hpc"),
				Action: func(c *cli.Context) error { return forgiveNodes(c, p) },
			},
			{
				Name: "remove", Usage: "remove a site: its glideins, what we put there, its record", ArgsUsage: "SITE",
				Description: explained("", "corral site remove here --wait --timeout 5m"),
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "force", Usage: "forget it at once, whatever it still keeps"},
					waitFlag("it is DELETED"), timeoutFlag(),
				},
				Action: func(c *cli.Context) error { return removeSite(c, p) },
			},
		},
	}
}

// siteVerb is a command that takes one site.
func siteVerb(name, usage, example string, do func(*cli.Context, *api.Client, string) error) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: "SITE", Description: explained("", example),
		Action: func(c *cli.Context) error {
			ref, err := argument(c, "site")
			if err != nil {
				return err
			}
			cl, err := connect(c)
			if err != nil {
				return err
			}
			return do(c, cl, ref)
		},
	}
}

func awaitSite(c *cli.Context, cl *api.Client, s corral.Site, until corral.SiteState, d time.Duration) (corral.Site, error) {
	id := strconv.FormatInt(int64(s.ID), 10)
	s, err := cl.WaitSite(c.Context, id, string(until), d)
	if err != nil {
		return s, about{"/v1/sites/" + id, err}
	}
	return s, nil
}

func listSites(c *cli.Context, p *printer) error {
	if err := noArguments(c); err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	sites, err := cl.Sites(c.Context, api.Filter{All: c.Bool("all")})
	if err != nil {
		return err
	}
	return list(p, sites, siteTable)
}

func forgiveNodes(c *cli.Context, p *printer) error {
	if c.NArg() == 0 {
		return corral.Errorf(corral.Invalid, "want SITE [NODE]…, got no arguments; see `%s --help`", c.Command.HelpName)
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	s, err := cl.ForgiveNodes(c.Context, c.Args().First(), c.Args().Tail()...)
	if err != nil {
		return err
	}
	return showSite(p, s)
}

// showSite prints a site, and for people below it the nodes that the next attempts avoid.
func showSite(p *printer, s corral.Site) error {
	if err := show(p, s, siteTable); err != nil || !p.forPeople() || len(s.Avoided) == 0 {
		return err
	}
	fmt.Fprintln(p.out)
	return list(p, s.Avoided, avoidedTable)
}

var avoidedTable = listing[corral.BadNode]{
	id: func(b corral.BadNode) string { return b.Node },
	columns: []column[corral.BadNode]{
		{"avoided node", func(b corral.BadNode) any { return b.Node }},
		{"attempts", func(b corral.BadNode) any { return b.Attempts }},
		{"since", func(b corral.BadNode) any { return when(b.Since) }},
		{"until", func(b corral.BadNode) any { return when(b.Until) }},
		{"reason", func(b corral.BadNode) any { return b.Why }},
	},
}

func removeSite(c *cli.Context, p *printer) error {
	ref, err := argument(c, "site")
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
	s, err := cl.RemoveSite(c.Context, ref, c.Bool("force"))
	if err != nil {
		return err
	}
	if c.Bool("force") {
		p.say("site %s is forgotten; what is below %s there stays", s.Name, s.Root)
	}
	if c.Bool("wait") && s.State != corral.SiteDeleted {
		name := s.Name
		if s, err = awaitSite(c, cl, s, corral.SiteDeleted, d); err != nil {
			if corral.KindOf(err) != corral.Failed {
				p.say("the removal of site %s goes on: see `corral site show %s`", name, name)
			}
			return err
		}
	}
	return show(p, s, siteTable)
}

var siteTable = listing[corral.Site]{
	id:   func(s corral.Site) string { return s.Name },
	none: "no sites; add one with `corral site create NAME --contact local: --batch fork`",
	columns: []column[corral.Site]{
		{"id", func(s corral.Site) any { return s.ID }},
		{"name", func(s corral.Site) any { return s.Name }},
		{"contact", func(s corral.Site) any { return s.Contact }},
		{"batch", func(s corral.Site) any { return s.Batch }},
		{"platform", func(s corral.Site) any { return platform(s.Platform) }},
		{"state", siteState},
		{"changed", func(s corral.Site) any { return when(s.UpdatedAt) }},
		{"reason", siteReason},
	},
	details: []column[corral.Site]{
		{"setup by", func(s corral.Site) any { return s.HeadBatch }},
		{"root", func(s corral.Site) any { return s.Root }},
		{"package", func(s corral.Site) any { return s.Package }},
		{"queue", func(s corral.Site) any { return s.Queue }},
		{"account", func(s corral.Site) any { return s.Account }},
		{"qos", func(s corral.Site) any { return s.QOS }},
		{"constraint", func(s corral.Site) any { return s.Constraint }},
		{"site options", func(s corral.Site) any { return strings.Join(s.SiteOptions, "; ") }},
		{"max queued", func(s corral.Site) any { return unless(s.Limits.MaxQueued) }},
		{"max running", func(s corral.Site) any { return unless(s.Limits.MaxRunning) }},
		{"relay", func(s corral.Site) any { return s.RelayTrouble }},
		{"probed", func(s corral.Site) any {
			if s.Facts == nil {
				return ""
			}
			return when(s.Facts.At)
		}},
	},
}

// siteState is the site's state, with what keeps corrald from it.
func siteState(s corral.Site) any {
	if trouble := s.Trouble.InShort(); trouble != "" && !s.State.Terminal() { // of one that is DELETED nothing is asked
		return string(s.State) + " (" + trouble + ")"
	}
	return s.State
}

// siteReason is why the site is as siteState says.
func siteReason(s corral.Site) any {
	if s.Trouble.Why != "" && !s.State.Terminal() {
		return fmt.Sprintf("since %s: %s", when(s.Trouble.Since), s.Trouble.Why)
	}
	return s.Reason
}

var waitsTable = listing[corral.WaitStats]{
	id: func(w corral.WaitStats) string {
		return fmt.Sprintf("%s %d×%d %s", w.Queue, w.Hosts, w.CPUs, short(w.Walltime.String()))
	},
	none: "no attempt has waited there yet",
	columns: []column[corral.WaitStats]{
		{"queue", func(w corral.WaitStats) any { return w.Queue }},
		{"hosts×cpus", func(w corral.WaitStats) any { return fmt.Sprintf("%d×%d", w.Hosts, w.CPUs) }},
		{"walltime", func(w corral.WaitStats) any { return short(w.Walltime.String()) }},
		{"attempts", func(w corral.WaitStats) any { return w.Count }},
		{"not started", func(w corral.WaitStats) any { return w.Censored }},
		{"median", func(w corral.WaitStats) any { return quantile(w.Median) }},
		{"90%", func(w corral.WaitStats) any { return quantile(w.P90) }},
		{"longest", func(w corral.WaitStats) any {
			if w.Censored == w.Count {
				return "" // nobody knows
			}
			return span(time.Duration(w.Max))
		}},
	},
}

func quantile(q corral.Quantile) string {
	if q.AtLeast {
		return "over " + span(time.Duration(q.Wait))
	}
	return span(time.Duration(q.Wait))
}

func platform(p corral.Platform) string {
	if p == (corral.Platform{}) {
		return ""
	}
	return fmt.Sprintf("%s %s %s", p.OS, p.Arch, p.Libc)
}

var entryTable = listing[corral.Entry]{
	id:   func(e corral.Entry) string { return strconv.FormatInt(e.ID, 10) },
	none: "nothing happened yet",
	columns: []column[corral.Entry]{
		{"at", func(e corral.Entry) any { return instant(e.At) }},
		{"object", func(e corral.Entry) any { return fmt.Sprintf("%s %d", e.Object, e.Of) }},
		{"event", func(e corral.Entry) any { return e.Event }},
		{"state", func(e corral.Entry) any { return e.To }},
		{"actor", func(e corral.Entry) any { return e.Actor }},
		{"reason", func(e corral.Entry) any { return e.Reason }},
	},
}
