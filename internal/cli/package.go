package cli

// Packages are installed at sites: HTCondor's daemons for workers, and HTCondor itself for pools. This file contains
// the verbs for corrald's catalog; package_build.go builds packages of HTCondor.

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/packages"
)

var catalog = noun[string]{name: "package", key: nameKey}

// packageVerbs are the verbs for packages.
type packageVerbs struct{ *printer }

func (v packageVerbs) command() *cli.Command {
	return &cli.Command{
		Name: "package", Category: resources,
		Subcommands: []*cli.Command{
			packageTable.listVerb(v.printer, (*api.Client).Packages),
			{
				Name: "import",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "signature",
						Usage: "`FILE` with the signature (default: FILE.sig or URL.sig)"},
					&cli.BoolFlag{Name: "sign",
						Usage: "have corrald sign a local archive with its own key: you vouch for it"},
					keyFlag(),
				},
				Action: creating(newPackage, (*api.Client).ImportPackage,
					func(_ *cli.Context, _ *api.Client, k corral.Package) error {
						return packageTable.show(v.printer, k)
					}),
			},
			v.buildCommand(),
			catalog.verb("verify", printing((*api.Client).VerifyPackage, func(k corral.Package) error {
				v.say("package %s has a valid signature of %s", k.Name, k.Key)
				return packageTable.show(v.printer, k)
			})),
			catalog.verb("remove", printing((*api.Client).RemovePackage, packageTable.one(v.printer))),
		},
	}
}

// newPackage creates a request with the path or URL of an archive. corrald reads the archive itself, so a path refers
// to corrald's host.
func newPackage(c *cli.Context) (in api.NewPackage, err error) {
	in.Source, in.Sign = c.Args().First(), c.Bool("sign")
	if !strings.Contains(in.Source, "://") {
		if in.Source, err = filepath.Abs(in.Source); err != nil {
			return in, fmt.Errorf("finding %s: %w", c.Args().First(), err)
		}
	}
	if name := c.String("signature"); name != "" {
		if in.Signature, err = readAll(c.Context, name, nil, packages.MaxSignedBytes); err != nil {
			return in, corral.ErrorAt(corral.Invalid, "--signature", "%w", err)
		}
	}
	return in, nil
}

// packageTable shortens digests and keys to the part that distinguishes them.
var packageTable = listing[corral.Package]{
	owner: func(k corral.Package) string { return k.Owner },

	id:   func(k corral.Package) string { return fmt.Sprint(k.ID) },
	none: "no packages; import one with `corral package import FILE`, or make HTCondor's with `corral package build`",
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
