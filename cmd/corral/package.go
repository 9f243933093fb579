package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/packages"
)

func packageCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "package", Category: resources, Usage: "worker packages, which sites need before workers can run there",
		Description: explained("A worker package is the bundle of programs that a site needs before workers can run there.", "corral package list"),
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list packages", Description: explained("", "corral package list"),
				Flags:  []cli.Flag{allFlag()},
				Action: func(c *cli.Context) error { return listPackages(c, p) },
			},
			{
				Name: "import", Usage: "bring an archive into the catalog", ArgsUsage: "FILE|URL",
				Description: explained("The archive must be signed with a key that corrald trusts, or be signed here with --sign.",
					"corral package import ./htcondor-23.9.6.tar.gz --signature ./htcondor.sig"),
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "signature", Usage: "`FILE` with the signature (default: FILE.sig or URL.sig)"},
					&cli.BoolFlag{Name: "sign", Usage: "have corrald sign a local archive with its own key: you vouch for it"},
					keyFlag(),
				},
				Action: func(c *cli.Context) error { return importPackage(c, p) },
			},
			packageBuildCommand(p),
			refVerb("package", "verify", "check the signature and every byte", func(c *cli.Context, cl *api.Client, ref string) error {
				k, err := cl.VerifyPackage(c.Context, ref)
				if err != nil {
					return err
				}
				p.say("package %s is what %s signed", k.Name, k.Key)
				return show(p, k, packageTable)
			}),
			refVerb("package", "remove", "remove a package that no site uses", func(c *cli.Context, cl *api.Client, ref string) error {
				k, err := cl.RemovePackage(c.Context, ref)
				if err != nil {
					return err
				}
				return show(p, k, packageTable)
			}),
		},
	}
}

// refVerb is a verb with one argument that names an object.
func refVerb(noun, name, usage string, do func(*cli.Context, *api.Client, string) error) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: strings.ToUpper(noun),
		Description: explained("", "corral "+noun+" "+name+" 1"),
		Action: func(c *cli.Context) error {
			ref, err := argument(c, noun)
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

func listPackages(c *cli.Context, p *printer) error {
	if err := noArguments(c); err != nil {
		return err
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	all, err := cl.Packages(c.Context, api.Filter{All: c.Bool("all")})
	if err != nil {
		return err
	}
	return list(p, all, packageTable)
}

func importPackage(c *cli.Context, p *printer) error {
	source, err := argument(c, "archive")
	if err != nil {
		return err
	}
	in := api.NewPackage{Source: source, Sign: c.Bool("sign")}
	if !strings.Contains(source, "://") {
		if in.Source, err = filepath.Abs(source); err != nil {
			return fmt.Errorf("finding %s: %w", source, err)
		}
	}
	if name := c.String("signature"); name != "" {
		if in.Signature, err = readAll(c.Context, name, nil, packages.MaxSignedBytes); err != nil {
			return corral.ErrorAt(corral.Invalid, "--signature", "%w", err)
		}
	}
	cl, err := connect(c)
	if err != nil {
		return err
	}
	k, err := cl.ImportPackage(c.Context, in, c.String("key"))
	if err != nil {
		return err
	}
	return show(p, k, packageTable)
}

var packageTable = listing[corral.Package]{
	id:   func(k corral.Package) string { return fmt.Sprint(k.ID) },
	none: "no packages; bring one in with `corral package import FILE`, or make HTCondor's with `corral package build`",
	columns: []column[corral.Package]{
		{"id", func(k corral.Package) any { return k.ID }},
		{"name", func(k corral.Package) any { return k.Name }},
		{"size", func(k corral.Package) any { return fmt.Sprintf("%.1f MiB", float64(k.SizeBytes)/(1<<20)) }},
		{"digest", func(k corral.Package) any { return k.Digest[:min(len(k.Digest), 19)] + "…" }},
		{"key", func(k corral.Package) any { return k.Key[:min(len(k.Key), 16)] + "…" }},
		{"mirrors", func(k corral.Package) any { return strings.Join(k.Mirrors, ",") }},
		{"state", func(k corral.Package) any { return k.State }},
		{"reason", func(k corral.Package) any { return k.Reason }},
	},
}
