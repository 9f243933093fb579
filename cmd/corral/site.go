package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

func siteCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name:  "site",
		Usage: "places that can run batch jobs",
		Subcommands: []*cli.Command{
			{
				Name: "create", Usage: "add a site and set it up", ArgsUsage: "[NAME]",
				Description: "Example: corral site create here --contact local: --batch fork --wait\n" +
					"With -f the site is read from a YAML or JSON file with the fields name, contact, batch, root.",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "f", Usage: "read the site from `FILE` (- for stdin)"},
					&cli.StringFlag{Name: "contact", Usage: "how to reach it: local:"},
					&cli.StringFlag{Name: "batch", Usage: "its batch system: fork"},
					&cli.StringFlag{Name: "root", Usage: "`DIR` there that is ours alone (default: one that corrald chooses)"},
					&cli.BoolFlag{Name: "wait", Usage: "return when it is READY"},
					timeoutFlag, keyFlag,
				},
				Action: func(c *cli.Context) error { return createSite(c, p) },
			},
			{
				Name: "list", Usage: "list sites", Description: "Example: corral site list -o json",
				Flags:  []cli.Flag{allFlag},
				Action: func(c *cli.Context) error { return listSites(c, p) },
			},
			siteVerb("show", "show a site", func(c *cli.Context, cl *api.Client, ref string) error {
				s, err := cl.Site(c.Context, ref)
				if err != nil {
					return err
				}
				return show(p, s, siteID, siteColumns)
			}),
			siteVerb("history", "what happened to a site, and when", func(c *cli.Context, cl *api.Client, ref string) error {
				entries, err := cl.SiteHistory(c.Context, ref)
				if err != nil {
					return err
				}
				return list(p, entries, entryID, entryColumns)
			}),
			{
				Name: "remove", Usage: "remove a site: its glideins, what we put there, its record", ArgsUsage: "SITE",
				Description: "Example: corral site remove here --wait",
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "force", Usage: "forget it at once, whatever it still keeps"},
					&cli.BoolFlag{Name: "wait", Usage: "return when it is DELETED"}, timeoutFlag,
				},
				Action: func(c *cli.Context) error { return removeSite(c, p) },
			},
		},
	}
}

// siteVerb is a command that takes one site.
func siteVerb(name, usage string, do func(*cli.Context, *api.Client, string) error) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: "SITE",
		Description: "Example: corral site " + name + " local",
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

func createSite(c *cli.Context, p *printer) error {
	n, err := newSite(c, p.in)
	if err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	s, err := cl.CreateSite(c.Context, n, c.String("key"))
	if err != nil {
		return err
	}
	if c.Bool("wait") {
		if s, err = cl.WaitSite(c.Context, strconv.FormatInt(int64(s.ID), 10), string(corral.SiteReady), c.Duration("timeout")); err != nil {
			return err
		}
	}
	return show(p, s, siteID, siteColumns)
}

// newSite reads the request from flags or from a file, never from both.
func newSite(c *cli.Context, stdin io.Reader) (api.NewSite, error) {
	n := api.NewSite{Contact: c.String("contact"), Batch: c.String("batch"), Root: c.String("root")}
	if file := c.String("f"); file != "" {
		if n != (api.NewSite{}) || c.NArg() > 0 {
			return n, corral.ErrorAt(corral.Invalid, "-f", "goes without NAME, --contact, --batch and --root")
		}
		return readSite(file, stdin)
	}
	name, err := argument(c, "site name")
	n.Name = name
	return n, err
}

// readSite reads a site file, refusing fields it does not know.
func readSite(file string, stdin io.Reader) (n api.NewSite, err error) {
	var b []byte
	if file == "-" {
		b, err = io.ReadAll(io.LimitReader(stdin, api.MaxBody))
	} else {
		b, err = os.ReadFile(file)
	}
	if err != nil {
		return n, corral.ErrorAt(corral.Invalid, "-f", "%w", err)
	}
	var asJSON []byte
	if asJSON, err = yaml.YAMLToJSON(b); err != nil {
		return n, corral.ErrorAt(corral.Invalid, file, "%s", yaml.FormatError(err, false, false))
	}
	if err := yaml.NewDecoder(bytes.NewReader(asJSON), yaml.DisallowUnknownField(), yaml.UseJSONUnmarshaler()).Decode(&n); err != nil && !errors.Is(err, io.EOF) {
		return n, corral.ErrorAt(corral.Invalid, file, "%s", yaml.FormatError(err, false, false))
	}
	return n, nil
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
	return list(p, sites, siteID, siteColumns)
}

func removeSite(c *cli.Context, p *printer) error {
	ref, err := argument(c, "site")
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
		if s, err = cl.WaitSite(c.Context, strconv.FormatInt(int64(s.ID), 10), string(corral.SiteDeleted), c.Duration("timeout")); err != nil {
			return err
		}
	}
	return show(p, s, siteID, siteColumns)
}

func siteID(s corral.Site) string { return s.Name }

var siteColumns = []column[corral.Site]{
	{"id", func(s corral.Site) any { return s.ID }},
	{"name", func(s corral.Site) any { return s.Name }},
	{"contact", func(s corral.Site) any { return s.Contact }},
	{"batch", func(s corral.Site) any { return s.Batch }},
	{"platform", func(s corral.Site) any { return platform(s.Platform) }},
	{"state", func(s corral.Site) any { return s.State }},
	{"since", func(s corral.Site) any { return when(s.UpdatedAt) }},
	{"root", func(s corral.Site) any { return s.Root }},
	{"reason", func(s corral.Site) any { return s.Reason }},
}

func platform(p corral.Platform) string {
	if p == (corral.Platform{}) {
		return ""
	}
	return fmt.Sprintf("%s %s %s", p.OS, p.Arch, p.Libc)
}

func entryID(e corral.Entry) string { return strconv.FormatInt(e.ID, 10) }

var entryColumns = []column[corral.Entry]{
	{"at", func(e corral.Entry) any { return e.At.Local().Format("2006-01-02 15:04:05.000") }},
	{"object", func(e corral.Entry) any { return fmt.Sprintf("%s %d", e.Object, e.Of) }},
	{"event", func(e corral.Entry) any { return e.Event }},
	{"state", func(e corral.Entry) any { return e.To }},
	{"actor", func(e corral.Entry) any { return e.Actor }},
	{"reason", func(e corral.Entry) any { return e.Reason }},
}
