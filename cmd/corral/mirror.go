package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

func mirrorCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "mirror", Category: resources, Usage: "servers and directories that have worker packages",
		Description: explained("A mirror is a copy of corrald's own directory of packages that sites can reach.", "corral mirror list"),
		Subcommands: []*cli.Command{
			{
				Name: "add", Usage: "add a mirror and read its index", ArgsUsage: "NAME URL",
				Description: explained("A mirror is a copy of corrald's directory mirror behind any http, https, ftp or sftp server, or a directory (file:///DIR).",
					"corral mirror add campus https://www.example.org/corral"),
				Flags:  []cli.Flag{keyFlag()},
				Action: func(c *cli.Context) error { return addMirror(c, p) },
			},
			{
				Name: "list", Usage: "list mirrors", Description: explained("", "corral mirror list"),
				Flags:  []cli.Flag{allFlag()},
				Action: func(c *cli.Context) error { return listMirrors(c, p) },
			},
			refVerb("mirror", "check", "read a mirror's index again", func(c *cli.Context, cl *api.Client, ref string) error {
				m, err := cl.CheckMirror(c.Context, ref)
				return checkedMirror(p, m, err)
			}),
			refVerb("mirror", "remove", "forget a mirror", func(c *cli.Context, cl *api.Client, ref string) error {
				m, err := cl.RemoveMirror(c.Context, ref)
				if err != nil {
					return err
				}
				return show(p, m, mirrorTable)
			}),
		},
	}
}

func addMirror(c *cli.Context, p *printer) error {
	if c.NArg() != 2 {
		return corral.Errorf(corral.Invalid, "want a name and a URL, got %d arguments; see `%s --help`", c.NArg(), c.Command.HelpName)
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	m, err := cl.AddMirror(c.Context, api.NewMirror{Name: c.Args().Get(0), URL: c.Args().Get(1)}, c.String("key"))
	if err == nil && m.Reason != "" { // it is added nevertheless: the server may be down just now
		p.say("mirror %s is added, but: %s", m.Name, m.Reason)
	}
	if err != nil {
		return err
	}
	return show(p, m, mirrorTable)
}

// checkedMirror shows a mirror; one whose index cannot be read is a failure.
func checkedMirror(p *printer, m corral.Mirror, err error) error {
	if err != nil {
		return err
	}
	if m.Reason != "" {
		return corral.ErrorAt(corral.Failed, "mirror "+m.Name, "%s", m.Reason)
	}
	return show(p, m, mirrorTable)
}

func listMirrors(c *cli.Context, p *printer) error {
	if err := noArguments(c); err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	all, err := cl.Mirrors(c.Context, api.Filter{All: c.Bool("all")})
	if err != nil {
		return err
	}
	return list(p, all, mirrorTable)
}

var mirrorTable = listing[corral.Mirror]{
	id:   func(m corral.Mirror) string { return m.Name },
	none: "no mirrors; sites take packages from corrald itself, or add one with `corral mirror add NAME URL`",
	columns: []column[corral.Mirror]{
		{"id", func(m corral.Mirror) any { return m.ID }},
		{"name", func(m corral.Mirror) any { return m.Name }},
		{"url", func(m corral.Mirror) any { return m.URL }},
		{"packages", func(m corral.Mirror) any { return m.Packages }},
		{"worked", func(m corral.Mirror) any {
			return fmt.Sprintf("%.1f of %.1f", m.Health.Successes, m.Health.Successes+m.Health.Failures)
		}},
		{"speed", func(m corral.Mirror) any { return fmt.Sprintf("%.1f MiB/s", m.Health.BytesPerS/(1<<20)) }},
		{"checked", func(m corral.Mirror) any { return when(m.CheckedAt) }},
		{"state", func(m corral.Mirror) any { return m.State }},
		{"reason", func(m corral.Mirror) any { return m.Reason }},
	},
}
