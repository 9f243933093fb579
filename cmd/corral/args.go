package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// normalize puts args in the order that the flag parser wants: global flags first, then the command,
// its flags, its arguments. People write `corral glidein remove 7 --now -o json`; all of these orders
// mean the same.
func normalize(app *cli.App, args []string) []string {
	n := normalizer{commands: app.Commands, global: app.Flags}
	for rest := args[1:]; len(rest) > 0; {
		rest = n.take(rest)
	}
	out := append([]string{args[0]}, n.hoisted...)
	out = append(append(out, n.path...), n.flags...)
	if slices.ContainsFunc(n.positional, func(s string) bool { return strings.HasPrefix(s, "-") }) {
		out = append(out, "--")
	}
	return append(out, n.positional...)
}

// A normalizer sorts arguments into what they are.
type normalizer struct {
	commands []*cli.Command // what may follow path
	global   []cli.Flag
	own      []cli.Flag // flags of the command at the end of path

	hoisted, path, flags, positional []string
}

// take consumes the first argument, with its value if it is a flag that wants one.
func (n *normalizer) take(args []string) (rest []string) {
	arg, rest := args[0], args[1:]
	switch {
	case arg == "--":
		n.positional = append(n.positional, rest...)
		return nil
	case len(arg) > 1 && arg[0] == '-':
		return n.takeFlag(arg, rest)
	}
	if i := slices.IndexFunc(n.commands, func(c *cli.Command) bool { return c.HasName(arg) }); i >= 0 && len(n.positional) == 0 {
		n.path = append(n.path, arg)
		n.own, n.commands = n.commands[i].Flags, n.commands[i].Subcommands
		return rest
	}
	n.positional = append(n.positional, arg)
	return rest
}

func (n *normalizer) takeFlag(arg string, rest []string) []string {
	name, _, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	into, flag := &n.flags, lookup(n.own, name)
	if flag == nil {
		if flag = lookup(n.global, name); flag != nil {
			into = &n.hoisted
		}
	}
	*into = append(*into, arg)
	if flag != nil && !hasValue && wantsValue(flag) && len(rest) > 0 {
		*into = append(*into, rest[0])
		return rest[1:]
	}
	return rest
}

func lookup(flags []cli.Flag, name string) cli.Flag {
	i := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i < 0 {
		return nil
	}
	return flags[i]
}

func wantsValue(f cli.Flag) bool {
	_, isBool := f.(*cli.BoolFlag)
	return !isBool
}
