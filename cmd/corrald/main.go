// Command corrald is the service: it keeps sites, glideins, clusters and runs as they were asked to
// be, and answers the REST API. One process serves one user (personal mode), on a Unix socket.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/descriptor"
	"github.com/corral-pilot/corral/internal/engine"
	"github.com/corral-pilot/corral/internal/version"
	"github.com/corral-pilot/corral/internal/xdg"
	"github.com/corral-pilot/corral/staging"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := descriptor.CloseOnExec(); err != nil { // what somebody gave us is not for jobs
		fmt.Fprintln(os.Stderr, "corrald: "+err.Error())
		os.Exit(api.ExitCode(err))
	}
	os.Exit(execute(ctx, os.Args, os.Stdout, os.Stderr))
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	layout, layoutErr := xdg.Find()
	app := &cli.App{
		Name:            "corrald",
		Usage:           "the Corral service; `corral up` starts a personal one",
		Version:         version.String(),
		HideHelpCommand: true,
		Writer:          stdout,
		ErrWriter:       stderr,
		ExitErrHandler:  func(*cli.Context, error) {},
		OnUsageError: func(_ *cli.Context, err error, _ bool) error {
			return corral.Errorf(corral.Invalid, "%w; see `corrald --help`", err)
		},
		Flags: flags(layout),
		Action: func(c *cli.Context) error {
			s, err := newSettings(c)
			if err != nil {
				return err
			}
			if layoutErr != nil && !c.IsSet("socket") {
				return layoutErr
			}
			lg := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: s.logLevel}))
			return serve(c.Context, lg, s)
		},
	}
	if err := app.RunContext(ctx, args); err != nil {
		fmt.Fprintln(stderr, "corrald: "+err.Error())
		return api.ExitCode(err)
	}
	return 0
}

func flags(l xdg.Layout) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "state", Value: l.State, EnvVars: []string{"CORRALD_STATE"}, Usage: "`DIR` for the database, keys and pid file"},
		&cli.StringFlag{Name: "cache", Value: l.Cache, EnvVars: []string{"CORRALD_CACHE"}, Usage: "`DIR` for worker packages and the roots of local sites"},
		&cli.StringFlag{Name: "data", Value: l.Data, EnvVars: []string{"CORRALD_DATA"}, Usage: "`DIR` for run directories"},
		&cli.StringFlag{Name: "socket", Value: l.Socket, EnvVars: []string{"CORRALD_SOCKET"}, Usage: "Unix socket of the API"},
		&cli.StringFlag{Name: "worker-socket", Value: l.Worker, EnvVars: []string{"CORRALD_WORKER_SOCKET"}, Usage: "Unix socket for workers on this machine"},
		&cli.StringFlag{Name: "worker-listen", EnvVars: []string{"CORRALD_WORKER_LISTEN"}, Usage: "`HOST:PORT` of the worker port, opened for the first site other than local (default: this machine's address on the way to that site; corral site probe says whether nodes reach it)"},
		&cli.StringFlag{Name: "advertise", EnvVars: []string{"CORRALD_ADVERTISE"}, Usage: "`HOST[:PORT]` under which sites reach the worker port (default: where it listens; of all addresses, the one on the way to each site)"},
		&cli.StringFlag{Name: "run-as", EnvVars: []string{"CORRALD_RUN_AS", "CORRAL_RUN_AS"}, Usage: "root's corrald runs as `USER`, with all it starts; HTCondor needs that"},
		&cli.StringFlag{Name: "pool-address", Value: "127.0.0.1", EnvVars: []string{"CORRALD_POOL_ADDRESS"}, Usage: "`IP` on which new HTCondor pools listen, if their cluster names none; workers of other machines must reach it"},
		&cli.StringFlag{Name: "pilot", EnvVars: []string{"CORRALD_PILOT"}, Usage: "pilot binary for this machine's architecture (default: the one beside corrald)"},
		&cli.StringFlag{Name: "supply", Value: string(engine.WayAuto), EnvVars: []string{"CORRALD_SUPPLY"}, Usage: "how packages get to sites: local, mirrors, push, or auto for the first of them that is open"},
		&cli.StringSliceFlag{Name: "trust-key", EnvVars: []string{"CORRALD_TRUST_KEY"}, Usage: "`ed25519:KEY` whose packages sites may run, beside corrald's own; may be repeated"},
		&cli.Int64Flag{Name: "mirror-floor", Value: staging.DefaultPace.BytesPerS, EnvVars: []string{"CORRALD_MIRROR_FLOOR"}, Usage: "`BYTES` a second below which a mirror is given up"},
		&cli.DurationFlag{Name: "mirror-window", Value: staging.DefaultPace.Window, EnvVars: []string{"CORRALD_MIRROR_WINDOW"}, Usage: "over how long that is measured"},
		&cli.Int64Flag{Name: "site-cache", Value: 4 << 30, EnvVars: []string{"CORRALD_SITE_CACHE"}, Usage: "`BYTES` of packages kept at a site; those used longest ago go first (0: no limit)"},
		&cli.StringFlag{Name: "mirror-listen", EnvVars: []string{"CORRALD_MIRROR_LISTEN"}, Usage: "serve corrald's packages by HTTP, read-only, on `HOST:PORT` (default: not)"},
		&cli.StringFlag{Name: "mirror-advertise", EnvVars: []string{"CORRALD_MIRROR_ADVERTISE"}, Usage: "`HOST[:PORT]` under which sites reach --mirror-listen (default: what it listens on)"},
		&cli.DurationFlag{Name: "lease", Value: 15 * time.Second, EnvVars: []string{"CORRALD_LEASE"}, Usage: "how long a silent worker keeps its tasks"},
		&cli.StringFlag{Name: "log-level", Value: "info", EnvVars: []string{"CORRALD_LOG_LEVEL"}, Usage: "debug, info, warn or error"},
	}
}
