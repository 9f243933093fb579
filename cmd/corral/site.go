package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"time"

	"github.com/goccy/go-yaml"
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
				return show(p, s, siteTable)
			}),
			siteVerb("history", "what happened to a site, and when", "corral site history local", func(c *cli.Context, cl *api.Client, ref string) error {
				entries, err := cl.SiteHistory(c.Context, ref)
				if err != nil {
					return err
				}
				return list(p, entries, entryTable)
			}),
			probeSiteCommand(p),
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

func createSiteCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "create", Usage: "add a site and set it up", ArgsUsage: "NAME",
		Description: explained("With -f the site is read from a YAML or JSON file with the fields name, contact, batch and root.",
			"corral site create here --contact local: --batch fork --wait\ncorral site create -f site.yaml"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "f", Usage: "read the site from `FILE`, - for stdin"},
			&cli.StringFlag{Name: "contact", Usage: "how to reach it, as `URL`: local:"},
			&cli.StringFlag{Name: "batch", Usage: "its batch `SYSTEM`: fork"},
			&cli.StringFlag{Name: "root", Usage: "`DIR` there that is ours alone (default: one that corrald chooses)"},
			waitFlag("it is READY"), timeoutFlag(), keyFlag(),
		},
		Action: func(c *cli.Context) error { return createSite(c, p) },
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

func createSite(c *cli.Context, p *printer) error {
	n, err := newSite(c, p.in)
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
	s, err := cl.CreateSite(c.Context, n, c.String("key"))
	if err != nil {
		return err
	}
	if c.Bool("wait") {
		if s, err = awaitSite(c, cl, s, corral.SiteReady, d); err != nil {
			return err
		}
	}
	return show(p, s, siteTable)
}

func awaitSite(c *cli.Context, cl *api.Client, s corral.Site, until corral.SiteState, d time.Duration) (corral.Site, error) {
	id := strconv.FormatInt(int64(s.ID), 10)
	s, err := cl.WaitSite(c.Context, id, string(until), d)
	if err != nil {
		return s, about{"/v1/sites/" + id, err}
	}
	return s, nil
}

// newSite reads the request from flags or from a file, never from both.
func newSite(c *cli.Context, stdin io.Reader) (api.NewSite, error) {
	n := api.NewSite{Contact: c.String("contact"), Batch: c.String("batch"), Root: c.String("root")}
	file := c.String("f")
	if file == "" {
		name, err := argument(c, "site name")
		n.Name = name
		return n, err
	}
	if !reflect.DeepEqual(n, api.NewSite{}) || c.NArg() > 0 {
		return n, corral.ErrorAt(corral.Invalid, "-f", "goes without NAME, --contact, --batch and --root")
	}
	b, err := readAll(file, stdin)
	if err != nil {
		return n, corral.ErrorAt(corral.Invalid, "-f", "%w", err)
	}
	return parseSite(file, b)
}

// readAll reads a file, or stdin for -.
func readAll(file string, stdin io.Reader) ([]byte, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		stdin = f
	}
	b, err := io.ReadAll(io.LimitReader(stdin, api.MaxBody+1))
	if err == nil && len(b) > api.MaxBody {
		err = fmt.Errorf("%s is longer than %d bytes", file, api.MaxBody)
	}
	return b, err
}

// parseSite reads a site file, called name in messages, refusing fields that it does not know. YAML
// holds JSON.
func parseSite(name string, b []byte) (n api.NewSite, err error) {
	documents := yaml.NewDecoder(bytes.NewReader(b), yaml.Strict(), yaml.UseJSONUnmarshaler())
	if err := documents.Decode(&n); err != nil && !errors.Is(err, io.EOF) {
		return api.NewSite{}, corral.ErrorAt(corral.Invalid, name, "%s", yaml.FormatError(err, false, false))
	}
	if err := documents.Decode(new(any)); !errors.Is(err, io.EOF) {
		return api.NewSite{}, corral.ErrorAt(corral.Invalid, name, "holds more than one site")
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
	return list(p, sites, siteTable)
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
		if s, err = awaitSite(c, cl, s, corral.SiteDeleted, d); err != nil {
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
		{"state", func(s corral.Site) any { return s.State }},
		{"since", func(s corral.Site) any { return when(s.UpdatedAt) }},
		{"reason", func(s corral.Site) any { return s.Reason }},
	},
	details: []column[corral.Site]{
		{"root", func(s corral.Site) any { return s.Root }},
		{"package", func(s corral.Site) any { return s.Package }},
	},
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
