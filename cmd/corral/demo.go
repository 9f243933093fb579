package main

import (
	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/demo"
)

func demoCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "demo", Usage: "the main job end to end, on a private corrald",
		Description: "Example: corral demo\n" +
			"Sets up a site on this machine, asks for pilots, runs the k-mer spectrum of the lambda phage genome on\n" +
			"them, compares the result with a single pass, and removes everything again.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "kind", Value: string(corral.Embedded), Usage: "kind of personal cluster: embedded"},
			&cli.BoolFlag{Name: "keep", Usage: "keep the run directory"},
		},
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			if kind := c.String("kind"); kind != string(corral.Embedded) {
				return corral.ErrorAt(corral.Invalid, "--kind", "%q is not a kind of cluster that this corral has; it has embedded", kind)
			}
			return demo.Run(c.Context, demo.Config{Out: p.out, Terminal: isTerminal(p.out), Keep: c.Bool("keep")})
		},
	}
}
