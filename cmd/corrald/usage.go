package main

// This file contains the messages for errors on the command line and in the environment. The errors of packages flag
// and cli contain names of Go functions and types, which do not help people who run corrald. These errors have no types
// of their own, so their texts are parsed; a test sets each setting to an invalid value and searches the message for
// such names.

import (
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/internal/kit/timetext"
)

// Texts of errors of packages flag and cli.
var (
	badValue    = regexp.MustCompile(`(?s)^invalid value (".*") for flag -(\S+): `)
	badVariable = regexp.MustCompile(`(?s)^could not parse (".*") (?:as \S+ value )?from environment ` +
		`variable "(\S+)"(?: as value)? for flag (\S+): `)
	noSuchFlag = regexp.MustCompile(`(?s)^flag provided but not defined: -(.+)$`)
	noValue    = regexp.MustCompile(`^flag needs an argument: -(\S+)$`)
)

// usageError converts an error of these packages to one of kind Invalid, with a message for users.
func usageError(c *cli.Context, err error, _ bool) error {
	said := err.Error()
	if m := badValue.FindStringSubmatch(said); m != nil {
		return corral.ErrorAt(corral.Invalid, "--"+m[2], "%s is not %s", m[1], wanted(c.App.Flags, m[2]))
	}
	if m := badVariable.FindStringSubmatch(said); m != nil {
		return corral.ErrorAt(corral.Invalid, m[2], "%s is not %s", m[1], wanted(c.App.Flags, m[3]))
	}
	if m := noSuchFlag.FindStringSubmatch(said); m != nil {
		var names []string
		for _, f := range c.App.Flags {
			names = append(names, f.Names()[0])
		}
		return corral.ErrorAt(corral.Invalid, "--"+m[1], "there is no such flag%s; see `corrald --help`",
			meant("--", input.Nearest(names, m[1])))
	}
	if m := noValue.FindStringSubmatch(said); m != nil {
		return corral.ErrorAt(corral.Invalid, "--"+m[1], "its value is missing; see `corrald --help`")
	}
	return corral.Errorf(corral.Invalid, "%w; see `corrald --help`", err)
}

// meant suggests another name, if there is one.
func meant(before, name string) string {
	if name == "" {
		return ""
	}
	return ": did you mean " + before + name + "?"
}

// wanted describes a valid value of a flag.
func wanted(flags []cli.Flag, name string) string {
	i := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i < 0 {
		return "a valid value"
	}
	switch flags[i].(type) {
	case *cli.GenericFlag:
		return "a duration such as " + timetext.Forms
	case *cli.IntFlag:
		return "a whole number"
	case *cli.Float64Flag:
		return "a number"
	case *cli.BoolFlag:
		return "true or false"
	}
	return "a valid value"
}

// checkTwice refuses a flag that is given again, unless it collects its values: package cli would use the last value.
func checkTwice(app *cli.App, words []string) error {
	flags, commands, given := app.Flags, app.Commands, map[string]bool{}
	for i := 0; i < len(words) && words[i] != "--"; i++ {
		if !strings.HasPrefix(words[i], "-") {
			if k := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(words[i]) }); k >= 0 {
				flags, commands = commands[k].Flags, commands[k].Subcommands
			}
			continue
		}
		name, _, valued := strings.Cut(strings.TrimLeft(words[i], "-"), "=")
		k := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
		if k < 0 {
			continue
		}
		if _, collects := flags[k].(*cli.StringSliceFlag); given[name] && !collects {
			return corral.Errorf(corral.Invalid, "--%s may be given only once; see `corrald --help`", name)
		}
		given[name] = true
		if _, isBool := flags[k].(*cli.BoolFlag); !isBool && !valued {
			i++
		}
	}
	return nil
}

// checkVariables refuses variables that look like a setting but are not one, for example misspelt ones: the intended
// setting would silently keep its default value. It ignores corral's own variables, which begin with CORRAL_.
func checkVariables(environment []string, flags []cli.Flag) error {
	var known []string
	for _, f := range flags {
		if f, ok := f.(cli.DocGenerationFlag); ok {
			known = append(known, f.GetEnvVars()...)
		}
	}
	for _, variable := range slices.Sorted(slices.Values(environment)) {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "CORRALD_") || slices.Contains(known, name) {
			continue
		}
		near := input.Nearest(known, name)
		return corral.ErrorAt(corral.Invalid, name, "corrald has no such setting%s", meant("", near))
	}
	return nil
}

// checkListen refuses an address that is not HOST:PORT; an empty address is accepted.
func checkListen(flag, address string) error {
	if address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil && port != "" {
		_, err = net.LookupPort("tcp", port) // a number, or a name such as https
	}
	if err != nil || port == "" {
		return corral.ErrorAt(corral.Invalid, flag, "%.80q is not HOST:PORT with a port from 0 to 65535", address)
	}
	return nil
}
