package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/demo"
)

func demoCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "demo", Category: start, Usage: "the main job end to end, on a private corrald",
		Description: explained("It sets up a site on this machine, asks for pilots, runs the k-mer spectrum of the lambda phage genome on them, compares the result with that of a single pass, and removes everything again. What is running besides is not touched.",
			"corral demo"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "kind", Value: string(corral.Embedded), Usage: "`KIND` of personal cluster: embedded"},
			&cli.BoolFlag{Name: "keep", Usage: "keep the run directory"},
		},
		Action: func(c *cli.Context) error { return playDemo(c, p) },
	}
}

func playDemo(c *cli.Context, p *printer) error {
	if err := noArguments(c); err != nil {
		return err
	}
	if kind := c.String("kind"); kind != string(corral.Embedded) {
		return corral.ErrorAt(corral.Invalid, "--kind", "%q is not supported; what is: %s", kind, corral.Embedded)
	}
	out := p.out // what a demo shows is what people ask it for
	switch {
	case p.quiet:
		out = io.Discard
	case !p.forPeople():
		out = p.err
	}
	r, err := demo.Run(c.Context, demo.Config{Out: out, Look: lookOf(out), Keep: c.Bool("keep")})
	if err != nil || p.forPeople() {
		return err
	}
	return show(p, r, runTable)
}
