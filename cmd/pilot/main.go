// Command pilot is the program that runs at a site: the setup job, the pilot job, the cleanup job. Such a job finds its
// order in order.json in its directory, and writes its report to report.json there. The same program is also started by
// those jobs (worker, host, task) and by corrald without a job (probe, relay).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/condor/transfer"
	"github.com/corral-pilot/corral/internal/kit/proc"
	"github.com/corral-pilot/corral/internal/kit/version"
	"github.com/corral-pilot/corral/internal/node/condorworker"
	"github.com/corral-pilot/corral/internal/node/jobfiles"
	"github.com/corral-pilot/corral/internal/node/pilot"
	"github.com/corral-pilot/corral/internal/node/process"
	"github.com/corral-pilot/corral/internal/shim/slurm/step"
)

// Exit statuses, for people and batch systems. The report contains more information.
const (
	exitFailed    = 1
	exitUsage     = 2
	exitDuplicate = 3
	exitPreempted = 4
)

// main exits with the status of the command. It treats the signals with which batch systems announce an end as
// cancellation; the command decides what to do before it ends, for example to let tasks finish.
func main() {
	if len(os.Args) == 2 && os.Args[1] == step.Command {
		runStep()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	signal.Notify(make(chan os.Signal, 1), process.Notices...) // otherwise they would end this process
	if err := proc.CloseOnExec(); err != nil {                 // tasks must not inherit open files
		fmt.Fprintln(os.Stderr, "pilot:", err) // this does not prevent tasks from running
	}
	err := app(os.Stdout, os.Stderr).RunContext(ctx, os.Args)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "pilot:", err)
	if exit, ok := errors.AsType[cli.ExitCoder](err); ok {
		os.Exit(exit.ExitCode())
	}
	os.Exit(exitFailed)
}

// runStep is the program of a task submitted with sbatch. It runs before all other code of this program: it ends with
// the same status as its job, and there may be thousands of short jobs.
func runStep() {
	status, err := step.Run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pilot:", err)
		os.Exit(step.ExitUnable)
	}
	step.End(status)
}

// app returns the command line application. It has a command for each kind of job, which a batch system starts, and
// hidden commands that only Corral's programs start. A job's command line contains only a directory: the order in that
// directory stays private, whereas every user of the node can read a command line.
func app(stdout, stderr io.Writer) *cli.App {
	lg := slog.New(slog.NewTextHandler(stderr, nil))
	return &cli.App{
		Name:            "pilot",
		Usage:           "runs a job of Corral at a site, as specified in order.json",
		Version:         version.String(),
		Writer:          stdout,
		ErrWriter:       stderr,
		HideHelpCommand: true,
		ExitErrHandler:  func(*cli.Context, error) {}, // main exits
		OnUsageError:    usage,
		Description: "Exit status: 0 done, or left as asked; 1 failed; 2 usage; 3 another pilot has the\n" +
			"attempt's lease; 4 the site took the node back.",
		Commands: []*cli.Command{
			job("setup", "installs the worker package, once", pilot.Setup, lg),
			job("run", "holds the node and runs workers until it must leave", pilot.Run, lg),
			job("cleanup", "removes everything below the site's root except this job's directory", pilot.Cleanup, lg),
			probe(stdout),
			relay(lg),
			hidden(process.WorkerCommand, "is started by run: one worker",
				func(ctx context.Context) error { return pilot.Worker(ctx, lg) }),
			hidden(process.HostCommand, "is started by run on another node of its job: keeps one worker there",
				func(ctx context.Context) error { return pilot.Host(ctx, lg, os.Stdin, stdout) }),
			hidden(condorworker.TaskCommand, "is started by HTCondor: the program of a job", condorworker.Task),
			stream(lg),
			fetch(stdout),
		},
	}
}

// hidden returns a command that only programs start.
func hidden(name, text string, do func(context.Context) error) *cli.Command {
	return &cli.Command{
		Name: name, Hidden: true, OnUsageError: usage, Usage: text,
		Action: func(c *cli.Context) error { return do(c.Context) },
	}
}

// stream returns the command that is the program of a worker job; its argument is the job's number.
func stream(lg *slog.Logger) *cli.Command {
	return &cli.Command{
		Name: jobfiles.StreamCommand, Hidden: true, OnUsageError: usage,
		Usage: "is started by HTCondor: takes tasks from corrald, in the slot of its job",
		Action: func(c *cli.Context) error {
			number, err := strconv.ParseInt(c.Args().First(), 10, 64)
			if err != nil || c.NArg() != 1 {
				return cli.Exit("want the number of a worker job", exitUsage)
			}
			return condorworker.Run(c.Context, lg, number)
		},
	}
}

// fetch returns the command that acts as a plugin of HTCondor's file transfer, with the arguments that HTCondor
// defines.
func fetch(stdout io.Writer) *cli.Command {
	return &cli.Command{
		Name: condorworker.FetchCommand, Hidden: true, SkipFlagParsing: true,
		Usage: "is started by HTCondor: fetches the inputs of a job that are URLs",
		Action: func(c *cli.Context) error {
			return transfer.Default.Command(c.Context, c.Args().Slice(), stdout)
		},
	}
}

// job returns the command for a kind of job: do carries out the order in a directory, writes its report there and
// returns it. The exit status repeats the outcome for the batch system, whose accounting should show a failed pilot as
// failed.
func job(
	name, text string, do func(context.Context, *slog.Logger, string) (jobfiles.Report, error), lg *slog.Logger,
) *cli.Command {
	return &cli.Command{
		Name: name, Usage: text, OnUsageError: usage,
		Description: "Example: pilot " + name + " --dir /scratch/corral/jobs/TAG",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "dir", Value: ".", Usage: "the job's `DIRECTORY`, which holds order.json"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return cli.Exit("unexpected argument "+c.Args().First(), exitUsage)
			}
			r, err := do(c.Context, lg.With("job", name), c.String("dir"))
			if err != nil {
				return err
			}
			lg.Info("job ended", "job", name, "outcome", r.Outcome, "reason", r.Reason)
			return exitStatus(r.Outcome, r.Reason)
		},
	}
}

// probe returns the command that examines a node for corrald and prints the result as JSON. A job reads the request
// from a file; over ssh the request is sent on standard input.
func probe(stdout io.Writer) *cli.Command {
	return &cli.Command{
		Name: "probe", OnUsageError: usage,
		Usage:       "measures how this machine reaches a pool, and accepts test connections for a while",
		Description: `Example: echo '{"collector": "pool.example.org:9618", "hold_s": 10}' | pilot probe`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "request", Usage: "`FILE` with the measurement to make, instead of standard input"},
		},
		Action: func(c *cli.Context) error {
			if !c.IsSet("request") {
				return pilot.Probe(c.Context, os.Stdin, stdout)
			}
			f, err := os.Open(c.String("request"))
			if err != nil {
				return err
			}
			defer f.Close()
			return pilot.Probe(c.Context, f, stdout)
		},
	}
}

// relay returns the command that runs a relay. It runs while its standard input is open, which is closed together with
// corrald's connection: no relay is left behind.
func relay(lg *slog.Logger) *cli.Command {
	return &cli.Command{
		Name: "relay", OnUsageError: usage,
		Usage: "connects nodes of the site with corrald, over its own standard input and output",
		Description: "Corrald starts it on the head node, over ssh, while glideins need it (--broker relay, or\n" +
			"auto where nodes have no other way). It accepts only worker nodes.\n" +
			"Example: pilot relay --root /scratch/corral",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "root", Required: true, Usage: "the site's `DIRECTORY`, where the relay stores its port",
			},
		},
		Action: func(c *cli.Context) error {
			return pilot.Relay(c.Context, lg, c.String("root"), os.Stdin, os.Stdout)
		},
	}
}

// usage converts package cli's error for a command line to an error with the matching exit status.
func usage(_ *cli.Context, err error, _ bool) error { return cli.Exit(err.Error(), exitUsage) }

// exitStatus returns an error with the exit status for the outcome, or nil if the outcome was requested.
func exitStatus(o corral.Outcome, reason string) error {
	switch o {
	case corral.OutcomeFailed, corral.OutcomeLost:
		return cli.Exit(reason, exitFailed)
	case corral.OutcomeDuplicate:
		return cli.Exit(reason, exitDuplicate)
	case corral.OutcomePreempted:
		return cli.Exit(reason, exitPreempted)
	}
	return nil
}
