package cli

// run executes a command line and returns an exit code. It first sorts the words (line.go), because package cli accepts
// them in one order only; then package cli parses the flags, and the action of the command does the work. Every failure
// is a single error value: run prints this value, and its kind determines the exit code according to the table in
// package api.
//
// Commands are literals of cli.Command in the file of their noun. They contain flags and an action; finish adds their
// help (help.go).

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// stdio holds the streams that a command reads and writes.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// A signalError is the cause of a context that a signal ended.
type signalError syscall.Signal

func (s signalError) Error() string { return syscall.Signal(s).String() }

// exitCode returns the code that shells report for a program ended by the signal: 130 or 143.
func (s signalError) exitCode() int { return 128 + int(s) }

// run runs one command line and returns its exit code. If ctx ends with a signalError as its cause, the command is
// interrupted; the exit code is then the one for that signal, whatever the command returned.
func run(ctx context.Context, args []string, std stdio) int {
	out := &stream{Writer: std.out}
	std.out = out
	p := &printer{stdio: std}
	app := p.newApp()
	err := cmp.Or(p.runLine(ctx, app, args), out.lost())
	if err == nil {
		return 0
	}
	if end, ok := errors.AsType[taskExit](err); ok { // its report has been printed; any signals were meant for the task
		return end.exitCode()
	}
	var s signalError
	if errors.As(context.Cause(ctx), &s) {
		return s.exitCode()
	}
	p.problem(err)
	return api.ExitCode(err)
}

// runLine runs the command that a command line names.
func (p *printer) runLine(ctx context.Context, app *cli.App, args []string) error {
	if len(args) > 1 && args[1] == completeWord {
		complete(ctx, app, args[2:], p.out)
		return nil
	}
	l := parse(app, args[1:])
	switch {
	case l.help:
		printHelp(p.out, app, l.path)
		return nil
	case l.version:
		l = parse(app, append(l.global, "version"))
	}
	if err := l.check(app); err != nil {
		return err
	}
	p.flags = l.ownFlag
	app.Metadata = map[string]any{typedWords: args}
	return app.RunContext(ctx, append([]string{app.Name}, l.arguments()...))
}

// newApp builds the tree of commands. A new tree is built for every command line, because package cli stores the values
// of flags in it. The help and the errors of package cli are disabled, because we print our own.
func (p *printer) newApp() *cli.App {
	app := &cli.App{
		Name:            "corral",
		HelpName:        "corral",
		HideHelp:        true, // we print our own help, see printHelp
		HideVersion:     true,
		HideHelpCommand: true,
		// A value, such as a line for a batch system or a label, may contain commas.
		DisableSliceFlagSeparator: true,
		Reader:                    p.in,
		Writer:                    p.out,
		ErrWriter:                 p.err,
		ExitErrHandler:            func(*cli.Context, error) {}, // only main exits
		OnUsageError:              usageError,
		Flags:                     globalFlags(),
		Before:                    func(c *cli.Context) error { return p.configure(c) },
	}
	app.Action = func(c *cli.Context) error { return noCommand(c, app, nil) }
	personal, plans, runs := personalVerbs{p}, planVerbs{p}, runVerbs{p}
	app.Commands = []*cli.Command{
		p.demoCommand(), personal.upCommand(), personal.downCommand(),
		siteVerbs{p}.command(), glideinVerbs{p}.command(), clusterVerbs{p}.command(), packageVerbs{p}.command(),
		mirrorVerbs{p}.command(), p.usageCommand(), p.eventsCommand(),
		workflowVerbs{p}.command(), profileVerbs{p}.command(), plans.command(), plans.simulateCommand(),
		plans.provisionCommand(), ensembleVerbs{p}.command(),
		runs.runCommand(), runs.submitCommand(), runs.command(), p.reportCommand(), shimVerbs{p}.command(),
		tokenVerbs{p}.command(), p.doctorCommand(), adminVerbs{p}.command(), p.completionCommand(), p.helpCommand(app),
		p.versionCommand(),
	}
	for _, c := range app.Commands {
		finish(app, c, app.Name)
	}
	return app
}

// globalFlags returns the flags that every command accepts, before or after the name of the command.
func globalFlags() []cli.Flag {
	return append(connectionFlags(),
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "table",
			Usage: "`FORM` of the output: table, json or yaml"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print only bare ids, or names"},
	)
}

// finish adds the common features of all commands to a command: help, our own usage errors, a check of its arguments
// and, for a noun, the response to a missing verb.
func finish(app *cli.App, c *cli.Command, parent string) {
	name := parent + " " + c.Name
	describe(name, c)
	c.OnUsageError = usageError
	c.HideHelp, c.HideHelpCommand = true, true
	if len(c.Subcommands) == 0 {
		act := c.Action
		c.Action = func(ctx *cli.Context) error {
			if err := checkLine(ctx); err != nil { // not in Before, so that errors about flag values are reported first
				return err
			}
			return act(ctx)
		}
		return
	}
	act := c.Action // plan is both a verb and a noun
	c.Action = func(ctx *cli.Context) error {
		slip := ctx.NArg() > 1 && input.Nearest(namesIn(c.Subcommands), ctx.Args().First()) != ""
		if act == nil || ctx.NArg() == 0 && ctx.NumFlags() == 0 || slip {
			return noCommand(ctx, app, c)
		}
		if err := checkLine(ctx); err != nil {
			return err
		}
		return act(ctx)
	}
	for _, sub := range c.Subcommands {
		finish(app, sub, name)
	}
}

// The messages of package flag about a wrong flag.
var (
	badValue  = regexp.MustCompile(`(?s)^invalid value (".*") for flag -(\S+): `)
	noSuchOne = regexp.MustCompile(`(?s)^flag provided but not defined: -(.+)$`)
)

// typedWords is the key in the app's metadata under which the words of the command line are stored.
const typedWords = "typed"

// usageError converts an error of package flag, about an unknown flag or an unreadable value, to an error of kind
// Invalid with our own wording. It suggests the correct name for a likely typing error.
func usageError(c *cli.Context, err error, _ bool) error {
	if m := noSuchOne.FindStringSubmatch(err.Error()); m != nil {
		err = fmt.Errorf("there is no flag %s", writtenFlag(c, m[1]))
		var known []string
		for _, f := range slices.Concat(c.Command.Flags, c.App.Flags) {
			if name := f.Names()[0]; len(name) > 1 { // every letter is similar to a one-letter flag
				known = append(known, name)
			}
		}
		if near := input.Nearest(known, m[1]); near != "" {
			return corral.Errorf(corral.Invalid, "%w; did you mean %s?", err, dashed(near))
		}
		if slices.Contains([]string{"submit", "trace", "baseline"}, c.Command.Name) {
			return corral.Errorf(corral.Invalid, "%w; for a flag of the command, write -- before the command", err)
		}
	} else if m := badValue.FindStringSubmatch(err.Error()); m != nil {
		err = notValue(c.Command.Flags, m[2], m[1], err)
	}
	return corral.Errorf(corral.Invalid, "%w; see `%s --help`", err, c.Command.HelpName)
}

// writtenFlag returns a flag in the form in which the user typed it.
func writtenFlag(c *cli.Context, name string) string {
	words, _ := c.App.Metadata[typedWords].([]string)
	for _, word := range words {
		flag, _, _ := strings.Cut(word, "=")
		if strings.TrimLeft(flag, "-") == name && flag != name {
			return flag
		}
	}
	return dashed(name)
}

// notValue returns an error that lists the values that a flag accepts.
func notValue(flags []cli.Flag, name, value string, err error) error {
	i := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i < 0 {
		return err
	}
	switch flags[i].(type) {
	case *cli.GenericFlag: // its own value has formatted the error
		return fmt.Errorf("%s: %s", dashed(name), err.Error()[len(badValue.FindString(err.Error())):])
	case *cli.IntFlag:
		return fmt.Errorf("%s: %s is not a whole number", dashed(name), value)
	case *cli.Uint64Flag:
		return fmt.Errorf("%s: %s is not a whole number, 0 or more", dashed(name), value)
	case *cli.Float64Flag:
		return fmt.Errorf("%s: %s is not a number", dashed(name), value)
	}
	return err
}

// noCommand handles a command line that names no command of noun, or of the program if noun is nil. If the line
// contains no other word, the user wants help; a noun without a verb is an error nevertheless, so that a script notices
// that nothing was done.
func noCommand(c *cli.Context, app *cli.App, noun *cli.Command) error {
	var path, among = []*cli.Command(nil), app.Commands
	if noun != nil {
		path, among = []*cli.Command{noun}, noun.Subcommands
	}
	if c.NArg() > 0 {
		return unknownCommand(c.Command.HelpName, among, c.Args().First())
	}
	if noun == nil {
		printHelp(app.Writer, app, nil)
		return nil
	}
	printHelp(app.ErrWriter, app, path)
	wants := "one of these verbs"
	if noun.ArgsUsage != "" {
		wants = "a " + strings.Trim(noun.ArgsUsage, "[]…") + ", or " + wants
	}
	return corral.Errorf(corral.Invalid, "`%s` wants %s", c.Command.HelpName, wants)
}

// unknownCommand returns the error for an unknown command. It suggests the correct name for a likely typing error.
func unknownCommand(parent string, among []*cli.Command, name string) error {
	if near := input.Nearest(namesIn(among), name); near != "" {
		return corral.Errorf(corral.Invalid, "there is no command %q; did you mean `%s %s`?", name, parent, near)
	}
	return corral.Errorf(corral.Invalid, "there is no command %q; see `%s --help`", name, parent)
}

// checkLine checks, before a command does anything, that the number of its arguments agrees with its help and that its
// flags can be combined.
func checkLine(c *cli.Context) error {
	least, most := 0, 0
	for word := range strings.FieldsSeq(c.Command.ArgsUsage) {
		switch {
		case strings.HasSuffix(word, "…"): // any number, since labels may select objects instead
			most = math.MaxInt
		case word[0] == '[':
			most++
		default:
			least, most = least+1, most+1
		}
	}
	switch n := c.NArg(); {
	case most == 0 && n > 0:
		return corral.Errorf(corral.Invalid, "unexpected argument %q; see `%s --help`", c.Args().First(),
			c.Command.HelpName)
	case n < least || n > most:
		return corral.Errorf(corral.Invalid, "want %s, got %d arguments; see `%s --help`", c.Command.ArgsUsage, n,
			c.Command.HelpName)
	}
	return checkWait(c)
}

// The groups in which help lists commands.
const (
	start     = "start here"
	resources = "resources"
	workflows = "workflows"
	setUp     = "set-up"
)
