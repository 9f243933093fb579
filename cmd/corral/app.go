package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/version"
	"github.com/corral-pilot/corral/internal/xdg"
)

// stdio is where a command reads and writes.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// exitCodes ends every command's help.
const exitCodes = `
EXIT CODES:
   0 done   1 the operation failed   2 usage or invalid input   3 cannot be satisfied as asked
   4 not found   5 refused   6 no answer, or outcome unknown: repeat the command   124 a wait timed out
   130, 143 interrupted, terminated
`

// run runs one command line and returns its exit code.
func run(ctx context.Context, args []string, std stdio) int {
	p := &printer{stdio: std}
	app := newApp(p)
	err := app.RunContext(ctx, normalize(app, args))
	if err == nil {
		return 0
	}
	var ended signalled
	if errors.As(err, &ended) {
		return int(ended)
	}
	if ctx.Err() != nil {
		return int(interrupted)
	}
	p.problem(err)
	return api.ExitCode(err)
}

// signalled is the error of a command that a signal ended after it said all there is to say.
type signalled int

const interrupted signalled = 130

func (s signalled) Error() string { return fmt.Sprintf("ended with status %d", int(s)) }

func newApp(p *printer) *cli.App {
	cli.AppHelpTemplate = strings.TrimRight(cli.AppHelpTemplate, "\n") + "\n" + exitCodes
	cli.CommandHelpTemplate = strings.TrimRight(cli.CommandHelpTemplate, "\n") + "\n" + exitCodes
	app := &cli.App{
		Name:                 "corral",
		Usage:                "pilot jobs for scientific workflows",
		Version:              version.String(),
		HideHelpCommand:      true,
		EnableBashCompletion: true,
		Reader:               p.in,
		Writer:               p.out,
		ErrWriter:            p.err,
		ExitErrHandler:       func(*cli.Context, error) {}, // main alone exits
		OnUsageError:         usageError,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "server", EnvVars: []string{"CORRAL_SERVER"}, Usage: "corrald to talk to: unix:PATH or http(s)://HOST (default: the personal one)"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "table", Usage: "table, json or yaml"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print bare ids only"},
		},
		Before: func(c *cli.Context) error { return p.configure(c) },
		Action: func(c *cli.Context) error { return unknownCommand(c) },
		Commands: []*cli.Command{
			upCommand(p), downCommand(p), demoCommand(p), doctorCommand(p),
			siteCommand(p), glideinCommand(p), clusterCommand(p), packageCommand(p), mirrorCommand(p),
			runCommand(p), runsCommand(p), workflowCommand(p), completionCommand(p),
		},
	}
	for _, c := range app.Commands {
		finish(c)
	}
	return app
}

// finish gives a command what all commands have: usage errors of our kind, and for a noun without a
// verb its help.
func finish(c *cli.Command) {
	c.OnUsageError = usageError
	c.HideHelpCommand = true
	if len(c.Subcommands) > 0 {
		c.Action = unknownCommand
	}
	for _, sub := range c.Subcommands {
		finish(sub)
	}
}

func usageError(c *cli.Context, err error, _ bool) error {
	return corral.Errorf(corral.Invalid, "%w; see `%s --help`", err, c.Command.HelpName)
}

func unknownCommand(c *cli.Context) error {
	if c.NArg() == 0 {
		return cli.ShowSubcommandHelp(c)
	}
	return corral.Errorf(corral.Invalid, "there is no command %q; see `%s --help`", c.Args().First(), strings.TrimSpace(c.Command.HelpName))
}

// argument returns the command's one argument, called name in messages.
func argument(c *cli.Context, name string) (string, error) {
	if c.NArg() != 1 {
		return "", corral.Errorf(corral.Invalid, "want one %s, got %d arguments; see `%s --help`", name, c.NArg(), c.Command.HelpName)
	}
	return c.Args().First(), nil
}

// noArguments refuses arguments of a command that takes none.
func noArguments(c *cli.Context) error {
	if c.NArg() != 0 {
		return corral.Errorf(corral.Invalid, "unexpected argument %q; see `%s --help`", c.Args().First(), c.Command.HelpName)
	}
	return nil
}

// connect returns a client for the corrald that the command line names, or for the personal one.
func connect(c *cli.Context) (*api.Client, error) {
	if server := c.String("server"); server != "" {
		return api.New(server)
	}
	layout, err := xdg.Find()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(layout.Socket); err != nil {
		return nil, corral.Errorf(corral.Unavailable, "no corrald runs here (no socket at %s): start one with `corral up`, or name one with --server", layout.Socket)
	}
	return api.New("unix:" + layout.Socket)
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
