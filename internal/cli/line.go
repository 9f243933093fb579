package cli

// The parser of package cli expects the flags of a command directly after its name. Users type them anywhere, so a line
// is sorted first: global flags, the command, its own flags, its arguments. Completion uses the same order to determine
// which words may follow.

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
)

// A line is a command line whose words are sorted by kind. `corral glidein remove 7 --now -o json` and `corral -o json
// glidein remove --now 7` are the same line.
type line struct {
	path       []*cli.Command // the commands that the line names: noun, verb
	global     []string       // flags of every command, with their values
	flags      []string       // flags of the last command of path, with their values
	positional []string
	help       bool     // the line contains --help or -h
	version    bool     // the line contains --version
	wanting    cli.Flag // the flag whose value is missing at the end, or nil
	last       string   // the word of that flag
	twice      string   // the word that gives a flag of one value again, or ""

	commands           []*cli.Command // commands that may follow path
	globalSet, ownFlag []cli.Flag
	given              []cli.Flag // flags of the line so far
}

// parse sorts args, the words after the program's name.
func parse(app *cli.App, args []string) *line {
	l := &line{commands: app.Commands, globalSet: app.Flags}
	for rest := args; len(rest) > 0; {
		rest = l.take(rest)
	}
	return l
}

// arguments returns the line in the order that the flag parser expects: global flags, the command, its flags, its
// arguments.
func (l *line) arguments() []string {
	out := slices.Clone(l.global)
	for _, c := range l.path {
		out = append(out, c.Name)
	}
	out = append(out, l.flags...)
	if slices.ContainsFunc(l.positional, func(s string) bool { return strings.HasPrefix(s, "-") }) {
		out = append(out, "--")
	}
	return append(out, l.positional...)
}

// check returns an error if the value of a flag is missing or ambiguous.
func (l *line) check(app *cli.App) error {
	switch {
	case l.wanting != nil: // the parser would use the next word of the sorted line as the value
		return corral.Errorf(corral.Invalid, "%s wants a value; see `%s --help`", l.last, l.name(app))
	case l.twice != "":
		return corral.Errorf(corral.Invalid, "%s may be given only once; see `%s --help`", l.twice, l.name(app))
	}
	return nil
}

// name returns the names of the program and of the line's commands.
func (l *line) name(app *cli.App) string {
	return strings.Join(append([]string{app.Name}, namesIn(l.path)...), " ")
}

// take consumes the first word, and also the word's value if the word is a flag that requires a value.
func (l *line) take(args []string) (rest []string) {
	word, rest := args[0], args[1:]
	switch {
	case word == "--":
		l.positional = append(l.positional, rest...)
		return nil
	case len(word) > 1 && word[0] == '-':
		return l.takeFlag(word, rest)
	}
	i := slices.IndexFunc(l.commands, func(c *cli.Command) bool { return c.HasName(word) })
	if i >= 0 && len(l.positional) == 0 {
		l.path = append(l.path, l.commands[i])
		l.ownFlag, l.commands = l.commands[i].Flags, l.commands[i].Subcommands
		return rest
	}
	l.positional = append(l.positional, word)
	return rest
}

// takeFlag consumes a flag with its value. It looks for the flag first among the flags of the command, then among the
// global flags; an unknown flag is left to package cli, which reports it.
func (l *line) takeFlag(word string, rest []string) []string {
	name, _, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
	into, flag := &l.flags, lookup(l.ownFlag, name)
	if flag == nil {
		if flag = lookup(l.globalSet, name); flag != nil {
			into = &l.global
		}
	}
	if flag == nil && slices.Contains([]string{"help", "h", "version"}, name) {
		l.help, l.version = l.help || name != "version", l.version || name == "version"
		return rest
	}
	if flag == nil && len(l.commands) > 0 && len(l.positional) > 0 {
		return rest // the error to report is that the command does not exist
	}
	*into = append(*into, word)
	if flag != nil && !repeatable(flag) && slices.Contains(l.given, flag) {
		l.twice, _, _ = strings.Cut(word, "=")
	}
	l.given = append(l.given, flag)
	if flag == nil || hasValue || !wantsValue(flag) {
		return rest
	}
	if len(rest) == 0 {
		l.wanting, l.last = flag, word
		return nil
	}
	*into = append(*into, rest[0])
	return rest[1:]
}

// repeatable reports whether a flag collects the values of its repetitions. Package cli would silently use the last
// value of any other flag.
func repeatable(f cli.Flag) bool {
	_, ok := f.(*cli.StringSliceFlag)
	return ok
}

// lookup returns the flag with a name, or nil.
func lookup(flags []cli.Flag, name string) cli.Flag {
	i := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i < 0 {
		return nil
	}
	return flags[i]
}

// wantsValue reports whether the word after a flag is its value.
func wantsValue(f cli.Flag) bool {
	_, isBool := f.(*cli.BoolFlag)
	return !isBool
}

// namesIn returns the names of commands.
func namesIn(commands []*cli.Command) (names []string) {
	for _, c := range commands {
		names = append(names, c.Name)
	}
	return names
}
