// Command pilot is what runs at a site: the setup job, the pilot job, the cleanup job. Such a job finds everything that
// it needs in order.json in its directory, and leaves in report.json there what became of it. The same program is what
// those jobs start themselves (worker, host, task) and what corrald starts without a job (probe, relay).
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
	"github.com/corral-pilot/corral/internal/node/sitejob"
	"github.com/corral-pilot/corral/internal/shim/slurm/step"
)

// Exit statuses. The report says more; these are for people and batch systems.
const (
	exitFailed    = 1
	exitUsage     = 2
	exitDuplicate = 3
	exitPreempted = 4
)

// main ends with the exit status of the command. The signals that it takes for an end are those with which batch
// systems announce one: what the command then still does, such as to let tasks finish, is its own matter.
func main() {
	if len(os.Args) == 2 && os.Args[1] == step.Command {
		runStep()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	signal.Notify(make(chan os.Signal, 1), process.Notices...) // else they would end this process
	if err := proc.CloseOnExec(); err != nil {                 // what a batch system left open is not for tasks
		fmt.Fprintln(os.Stderr, "pilot:", err) // tasks run all the same
	}
	err := app(os.Stdout, os.Stderr).RunContext(ctx, os.Args)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "pilot:", err)
	var exit cli.ExitCoder
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	os.Exit(exitFailed)
}

// runStep is the program of a task that somebody submitted with sbatch. It comes before all else: it ends as its job
// ends, and thousands of jobs may be short.
func runStep() {
	status, err := step.Run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pilot:", err)
		os.Exit(step.ExitUnable)
	}
	step.End(status)
}

// app has a command for each kind of job, which a batch system starts, and those that only our programs start. A job's
// command line names a directory and no more: the order in it stays with the job, while every user of the node could
// read a command line.
func app(stdout, stderr io.Writer) *cli.App {
	lg := slog.New(slog.NewTextHandler(stderr, nil))
	return &cli.App{
		Name:            "pilot",
		Usage:           "does a job of Corral at a site, as order.json says",
		Version:         version.String(),
		Writer:          stdout,
		ErrWriter:       stderr,
		HideHelpCommand: true,
		ExitErrHandler:  func(*cli.Context, error) {}, // main exits
		OnUsageError:    usage,
		Description: "Exit status: 0 done, or left as asked; 1 failed; 2 usage; 3 another pilot has the\n" +
			"attempt's lease; 4 the site took the node back.",
		Commands: []*cli.Command{
			job("setup", "installs the worker package, once", sitejob.Setup, lg),
			job("run", "holds the node and runs workers until it must leave", pilot.Run, lg),
			job("cleanup", "removes everything below the site's root but this job's directory", sitejob.Cleanup, lg),
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

// hidden is a command that only programs start.
func hidden(name, text string, do func(context.Context) error) *cli.Command {
	return &cli.Command{
		Name: name, Hidden: true, OnUsageError: usage, Usage: text,
		Action: func(c *cli.Context) error { return do(c.Context) },
	}
}

// stream is the program of a worker job, whose number it is given.
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

// fetch is a plugin of HTCondor's file transfer, whose arguments are HTCondor's.
func fetch(stdout io.Writer) *cli.Command {
	return &cli.Command{
		Name: condorworker.FetchCommand, Hidden: true, SkipFlagParsing: true,
		Usage: "is started by HTCondor: fetches the inputs of a job that are URLs",
		Action: func(c *cli.Context) error {
			return transfer.Default.Command(c.Context, c.Args().Slice(), stdout)
		},
	}
}

// job is the command of a job: do does what the order in a directory asks, leaves its report there and returns it. The
// exit status repeats the report for the batch system, in whose accounting a failed pilot should count as failed.
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

// probe answers what corrald wants to know about a node, as JSON. A job has its request in a file; through ssh it comes
// on standard input.
func probe(stdout io.Writer) *cli.Command {
	return &cli.Command{
		Name: "probe", OnUsageError: usage,
		Usage:       "measures what this machine reaches of a pool, and can be dialled for a while",
		Description: `Example: echo '{"collector": "pool.example.org:9618", "hold_s": 10}' | pilot probe`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "request", Usage: "`FILE` that says what to measure, instead of standard input"},
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

// relay runs for as long as its standard input is open, which ends with corrald's connection: no relay is left behind.
func relay(lg *slog.Logger) *cli.Command {
	return &cli.Command{
		Name: "relay", OnUsageError: usage,
		Usage: "connects nodes of the site with corrald, through its own standard input and output",
		Description: "Corrald starts it on the head node, through ssh, while glideins need it (--broker relay, or\n" +
			"auto where nodes have no other way). It listens for worker nodes and for nothing else.\n" +
			"Example: pilot relay --root /scratch/corral",
		Flags: []cli.Flag{
			&cli.StringFlag{
				Name: "root", Required: true, Usage: "the site's `DIRECTORY`, where the relay notes its port",
			},
		},
		Action: func(c *cli.Context) error {
			return pilot.Relay(c.Context, lg, c.String("root"), os.Stdin, os.Stdout)
		},
	}
}

// usage makes what package cli says of a command line an error with the exit status for it.
func usage(_ *cli.Context, err error, _ bool) error { return cli.Exit(err.Error(), exitUsage) }

// exitStatus is nil for an outcome that was asked for.
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
