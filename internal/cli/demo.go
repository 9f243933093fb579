package cli

// The demo itself is in package demo. This file adds the command line: the destination of the output, and the source of
// HTCondor for --kind condor.

import (
	"context"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/cli/demo"
)

func (p *printer) demoCommand() *cli.Command {
	return &cli.Command{
		Name: "demo", Category: start,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "kind", Value: string(corral.Embedded),
				Usage: "`KIND` of personal cluster: embedded or condor"},
			&cli.BoolFlag{Name: "keep", Usage: "keep the run directory"},
			&cli.StringFlag{Name: "from",
				Usage: "with --kind condor: use the HTCondor installed in `DIR`, not Debian's"},
			&cli.StringFlag{Name: "run-as", EnvVars: []string{"CORRAL_RUN_AS"},
				Usage: "root's corrald runs as `USER` (default: root; with --kind condor nobody)"},
		},
		Action: p.playDemo,
	}
}

// playDemo prints the demo on stdout; with -o json it prints it on stderr, and the run on stdout. HTCondor refuses jobs
// of root, so for --kind condor root's corrald runs as nobody.
func (p *printer) playDemo(c *cli.Context) error {
	kind := corral.ClusterKind(c.String("kind"))
	if kind != corral.Embedded && kind != corral.Condor {
		return corral.ErrorAt(corral.Invalid, "--kind", "%q is not supported: want %s or %s", kind, corral.Embedded,
			corral.Condor)
	}
	if kind != corral.Condor && c.IsSet("from") {
		return corral.ErrorAt(corral.Invalid, "--from", "requires --kind condor")
	}
	runAs := c.String("run-as")
	if kind == corral.Condor && runAs == "" && os.Getuid() == 0 {
		runAs = "nobody"
	}
	out := p.out
	switch {
	case p.quiet:
		out = io.Discard
	case !p.forPeople():
		out = p.err
	}
	packages := func(ctx context.Context, dir string, say func(string)) error {
		_, err := htcondorSource{installed: c.String("from"), suite: defaultSuite}.pack(ctx, dir, say)
		return err
	}
	r, err := demo.Run(c.Context, demo.Config{
		Out: out, Look: lookOf(out), Keep: c.Bool("keep"), Kind: kind, RunAs: runAs, Packages: packages,
	})
	if err != nil || p.forPeople() {
		return err
	}
	return runTable.show(p, r)
}
