package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/demo"
	"github.com/corral-pilot/corral/internal/xdg"
	"github.com/corral-pilot/corral/packages/htcondor"
)

func demoCommand(p *printer) *cli.Command {
	return &cli.Command{
		Name: "demo", Category: start, Usage: "the main job end to end, on a private corrald",
		Description: explained("It sets up a site on this machine, asks for pilots, runs the k-mer spectrum of the lambda phage genome on them, compares the result with that of a single pass, and removes everything again. With --kind condor it starts an HTCondor pool for the pilots, of packages that it makes of Debian's; HTCondor refuses root's jobs, so root's corrald runs as nobody then. What is running besides is not touched.",
			"corral demo\ncorral demo --kind condor"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "kind", Value: string(corral.Embedded), Usage: "`KIND` of personal cluster: embedded or condor"},
			&cli.BoolFlag{Name: "keep", Usage: "keep the run directory"},
			&cli.StringFlag{Name: "run-as", EnvVars: []string{"CORRAL_RUN_AS"}, Usage: "root's corrald runs as `USER` (default: root; with --kind condor nobody)"},
		},
		Action: func(c *cli.Context) error { return playDemo(c, p) },
	}
}

func playDemo(c *cli.Context, p *printer) error {
	if err := noArguments(c); err != nil {
		return err
	}
	kind := corral.ClusterKind(c.String("kind"))
	if kind != corral.Embedded && kind != corral.Condor {
		return corral.ErrorAt(corral.Invalid, "--kind", "%q is not supported; what is: %s, %s", kind, corral.Embedded, corral.Condor)
	}
	runAs := c.String("run-as")
	if kind == corral.Condor && runAs == "" && os.Getuid() == 0 {
		runAs = "nobody"
	}
	out := p.out // what a demo shows is what people ask it for
	switch {
	case p.quiet:
		out = io.Discard
	case !p.forPeople():
		out = p.err
	}
	r, err := demo.Run(c.Context, demo.Config{Out: out, Look: lookOf(out), Keep: c.Bool("keep"), Kind: kind, RunAs: runAs, Packages: demoPackages})
	if err != nil || p.forPeople() {
		return err
	}
	return show(p, r, runTable)
}

// demoPackages returns the archives of HTCondor's packages. They are made once by each build of this program, and
// kept where they can be downloaded or made again.
func demoPackages(ctx context.Context, say func(string)) ([]string, error) {
	const suite = "trixie"
	layout, err := xdg.Find()
	if err != nil {
		return nil, err
	}
	self, err := digestOfSelf()
	if err != nil {
		return nil, fmt.Errorf("reading this program: %w", err)
	}
	parent := filepath.Join(layout.Downloads(), "packages")
	dir := filepath.Join(parent, suite+"-"+self)
	if found, _ := filepath.Glob(filepath.Join(dir, "*.tar.gz")); len(found) > 0 {
		return found, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("making a folder for packages: %w", err)
	}
	made, err := makePackages(ctx, htcondor.Debian{Suite: suite, Cache: filepath.Join(layout.Downloads(), "debian"), Progress: say}, parent)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(made)
	if others, err := filepath.Glob(filepath.Join(parent, suite+"-*")); err == nil {
		for _, other := range others {
			_ = os.RemoveAll(other) // another build's: it takes room, and does no harm
		}
	}
	if err := os.Rename(made, dir); err != nil {
		return nil, fmt.Errorf("keeping packages: %w", err)
	}
	return filepath.Glob(filepath.Join(dir, "*.tar.gz"))
}

// makePackages makes the packages in a new folder of parent.
func makePackages(ctx context.Context, d htcondor.Debian, parent string) (dir string, err error) {
	scratch, err := os.MkdirTemp("", "corral-htcondor-")
	if err != nil {
		return "", fmt.Errorf("making a folder to unpack in: %w", err)
	}
	defer os.RemoveAll(scratch)
	from, err := d.Unpack(ctx, scratch)
	if err != nil {
		return "", err
	}
	dir, err = os.MkdirTemp(parent, ".new-")
	if err != nil {
		return "", fmt.Errorf("making a folder for packages: %w", err)
	}
	for _, what := range []string{htcondor.Worker, htcondor.Pool} {
		d.Progress(fmt.Sprintf("packing %s of HTCondor %s", what, from.Version))
		if _, err := packInto(ctx, from, what, dir); err != nil {
			return "", errors.Join(err, os.RemoveAll(dir))
		}
	}
	return dir, nil
}

func digestOfSelf() (string, error) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}
