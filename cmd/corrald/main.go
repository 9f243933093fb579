// Command corrald is the service: it keeps sites, glideins, clusters and runs in the requested state, and serves the
// REST API. One process serves one user (personal mode), on a Unix socket, or with --tls-listen also users with a token
// (central mode), on TLS.
//
// It starts in four steps. newSettings checks the flags, and foresee checks conditions outside corrald; neither changes
// anything, and --check-config exits after them. settle creates the directories while the process may still be root's,
// and then permanently becomes the user. serve opens the store, whose lock ensures that this is the only corrald with
// that state. It assembles the parts, and runs them until a signal arrives; then the parts end in the reverse order of
// their dependencies.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/fault"
	"github.com/corral-pilot/corral/internal/kit/proc"
	"github.com/corral-pilot/corral/internal/kit/timetext"
	"github.com/corral-pilot/corral/internal/kit/version"
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/internal/service/personal"
	"github.com/corral-pilot/corral/internal/sites/delivery"
)

// main first ensures that jobs do not inherit files that this process has inherited, such as a lock held by a script:
// jobs may outlive the script by days.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := proc.CloseOnExec(); err != nil { // jobs must not inherit this process's files
		fmt.Fprintln(os.Stderr, "corrald: "+err.Error())
		os.Exit(api.ExitCode(err))
	}
	words := personal.NewWords(os.Stderr)
	code := execute(ctx, os.Args, os.Stdout, words)
	if code != 0 {
		words.Say()
	}
	os.Exit(code)
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
		OnUsageError:    usageError,
		Flags:           flags(layout),
		Commands:        []*cli.Command{adminCommand(layout)},
		Action: func(c *cli.Context) error {
			if err := checkVariables(os.Environ(), c.App.Flags); err != nil {
				return err
			}
			s, err := newSettings(c)
			if err != nil {
				return err
			}
			if layoutErr != nil && !c.IsSet("socket") {
				return layoutErr
			}
			lg := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: s.logLevel}))
			if err := fault.Set(c.String("faults"), lg); err != nil {
				return corral.ErrorAt(corral.Invalid, "--faults", "%w", err)
			}
			notes, err := foresee(c.Context, &s)
			if err != nil {
				return err
			}
			if c.Bool("check-config") {
				return printConfig(stdout, c, s, notes)
			}
			return serve(c.Context, lg, s)
		},
	}
	err := checkTwice(app, args[1:])
	if err == nil {
		err = app.RunContext(ctx, args)
	}
	if err != nil {
		if !errors.As(err, new(told)) {
			fmt.Fprintln(stderr, "corrald: "+err.Error())
		}
		return api.ExitCode(err)
	}
	return 0
}

// flags returns corrald's flags, each with its own variable: CORRALD_ and the flag's name.
func flags(l xdg.Layout) []cli.Flag {
	text := func(name, value, usage string) cli.Flag {
		return &cli.StringFlag{Name: name, Value: value, EnvVars: variables(name), Usage: usage}
	}
	span := func(name string, value time.Duration, usage string) cli.Flag {
		return &cli.GenericFlag{Name: name, Value: timetext.NewValue(value, timetext.Duration),
			EnvVars: variables(name), Usage: usage}
	}
	return append([]cli.Flag{
		text("state", l.State, "`DIR` for the database, keys and pid file"),
		text("cache", l.Cache, "`DIR` for worker packages and the roots of local sites"),
		text("data", l.Data, "`DIR` for run directories"),
		text("socket", l.Socket, "Unix socket of the API"),
		text("worker-socket", l.Worker, "Unix socket for workers on this machine"),
		text("worker-listen", "", "`HOST:PORT` of the worker port, opened when a site other than local first needs it "+
			"(default: this machine's address on the route to that site; corral site probe tests it)"),
		text("advertise", "", "`HOST[:PORT]` at which sites reach the worker port "+
			"(default: where it listens; if that is every address, the one on the route to each site)"),
		text("run-as", "", "run root's corrald, and everything that it starts, as `USER`; HTCondor requires this"),
		text("pool-address", "127.0.0.1", "`IP` on which new HTCondor pools listen by default; "+
			"workers on other machines must reach it"),
		text("pilot", "", "pilot binary for this machine's architecture (default: the one beside corrald)"),
		text("supply", string(delivery.WayAuto), "how packages are delivered to sites: local, mirrors, push, "+
			"or auto for the first way that works"),
		&cli.StringSliceFlag{Name: "trust-key", EnvVars: variables("trust-key"),
			Usage: "`ed25519:KEY` whose packages sites may run, in addition to corrald's own; may be repeated"},
		text("mirror-listen", "", "serve corrald's packages with HTTP, read-only, on `HOST:PORT` (default: off)"),
		text("mirror-advertise", "", "`HOST[:PORT]` at which sites reach --mirror-listen "+
			"(default: where it listens)"),
		text("metrics-listen", "", "serve only /metrics for Prometheus on `HOST:PORT`; any client that can "+
			"connect may read names of owners, sites and clusters (default: off; the API also has /metrics)"),
		&cli.StringFlag{Name: "faults", EnvVars: variables("faults"), Hidden: true,
			Usage: "actions that should fail, for tests (internal/kit/fault)"},
		span("lease", 15*time.Second, "how long a silent worker keeps its tasks"),
		span("job-lease", 2*time.Minute,
			"how long a silent worker of an HTCondor pool keeps its job, and a job waits for it"),
		span("poll", 2*time.Second, "interval for polling a site while changes of jobs are expected; a tenth of it "+
			"just after a change, and up to a minute while none are expected"),
		span("keep-history", 90*24*time.Hour, "maximum age of entries in histories; 0: keep all"),
		&cli.IntFlag{Name: "keep-log-mib", Value: 64, EnvVars: variables("keep-log-mib"),
			Usage: "MiB after which corrald.log is renamed corrald.log.1 and a new one begins; 0: never"},
		&cli.IntFlag{Name: "machine-cpus", EnvVars: variables("machine-cpus"),
			Usage: "how many cpus of this machine the site local offers: fewer than there are, or more for tasks " +
				"that mostly wait (default: all)"},
		text("log-level", "info", "debug, info, warn or error"),
	}, centralFlags()...)
}

// variables returns the environment variables that set a flag. The variable for --run-as is also read by corral, and
// therefore has a second name.
func variables(flag string) []string {
	name := strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
	if flag == "run-as" {
		return []string{"CORRALD_" + name, "CORRAL_" + name}
	}
	return []string{"CORRALD_" + name}
}
