package notation

import (
	"errors"
	"fmt"
	"strings"
)

// An Option is an option of a Slurm command.
type Option struct {
	Long     string // without its hyphens
	Short    byte   // 0: none
	Argument Argument
}

// An Argument specifies whether an option has an argument.
type Argument int

// The kinds of options. An optional argument must be in the same word, as in --export=ALL.
const (
	NoArgument Argument = iota
	Required
	Optional
)

// Options parses a compact list of options: "all|a name|n= jobs|j?" contains an option without an argument, an option
// with an argument, and an option with an optional argument.
func Options(list string) []Option {
	var options []Option
	for text := range strings.FieldsSeq(list) {
		o := Option{Long: strings.TrimRight(text, "=?")}
		switch text[len(o.Long):] {
		case "=":
			o.Argument = Required
		case "?":
			o.Argument = Optional
		}
		if long, short, ok := strings.Cut(o.Long, "|"); ok {
			o.Long, o.Short = long, short[0]
		}
		options = append(options, o)
	}
	return options
}

// A Given is an option that was given. A word that is not an option has no Name, only a Value.
type Given struct{ Name, Value string }

// A UsageError is an invalid command line, in getopt's wording, including the command's name.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

// Message returns the text for err that a command prints on its standard error, without a final newline.
func Message(command string, err error) string {
	if usage := (*UsageError)(nil); errors.As(err, &usage) {
		return usage.Text
	}
	text, prefix := err.Error(), command+": error: "
	if fatal, ok := strings.CutPrefix(text, "fatal: "); ok {
		text, prefix = fatal, command+": fatal: "
	}
	return prefix + strings.ReplaceAll(text, "\n", "\n"+prefix)
}

// A Getopt parses command lines like getopt_long: -J name, -Jname, --job-name=name, --job-name name, -hn, and
// abbreviated long options.
type Getopt struct {
	Command string   // the prefix of its messages
	Options []Option // in the order in which ambiguous options are listed
	Ordered bool     // options end at the first word that is not an option
}

// Parse parses words, without the command's name. It returns the options in order, by their long names; rest contains
// all other words.
func (g Getopt) Parse(words []string) (given []Given, rest []string, err error) {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case word == "--": // none of the following words is an option
			return given, append(rest, words...), nil
		case strings.HasPrefix(word, "--"):
			given, words, err = g.long(given, word, words)
		case len(word) > 1 && word[0] == '-': // a single hyphen is a file
			given, words, err = g.short(given, word[1:], words)
		case g.Ordered: // the script; the rest belongs to it
			return given, append(append(rest, word), words...), nil
		default:
			rest = append(rest, word)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return given, rest, nil
}

func (g Getopt) usage(format string, args ...any) error {
	return &UsageError{fmt.Sprintf("%s: %s\nTry \"%s --help\" for more information",
		g.Command, fmt.Sprintf(format, args...), g.Command)}
}

// long parses --name, --name=value, or --name with its value in the next word.
func (g Getopt) long(given []Given, word string, rest []string) ([]Given, []string, error) {
	name, value, assigned := strings.Cut(word[2:], "=")
	option, err := g.find(word, name)
	switch {
	case err != nil:
		return nil, nil, err
	case option.Argument == NoArgument && assigned:
		return nil, nil, g.usage("option '--%s' doesn't allow an argument", option.Long)
	case option.Argument == Required && !assigned:
		if len(rest) == 0 {
			return nil, nil, g.usage("option '--%s' requires an argument", option.Long)
		}
		value, rest = rest[0], rest[1:]
	}
	return append(given, Given{option.Long, value}), rest, nil
}

// find finds an option by its name, or by a unique prefix of it.
func (g Getopt) find(word, name string) (Option, error) {
	var found []Option
	for _, option := range g.Options {
		if option.Long == name {
			return option, nil // even if it is a prefix of another
		}
		if strings.HasPrefix(option.Long, name) {
			found = append(found, option)
		}
	}
	switch len(found) {
	case 0:
		return Option{}, g.usage("unrecognized option '%s'", word)
	case 1:
		return found[0], nil
	}
	var names strings.Builder
	for _, option := range found {
		names.WriteString(" '--" + option.Long + "'")
	}
	return Option{}, g.usage("option '%s' is ambiguous; possibilities:%s", word, names.String())
}

// short parses letters after a single hyphen; the last letter may have an argument.
func (g Getopt) short(given []Given, letters string, rest []string) ([]Given, []string, error) {
	for i := range len(letters) {
		option, ok := g.letter(letters[i])
		if !ok {
			return nil, nil, g.usage("invalid option -- '%c'", letters[i])
		}
		value := letters[i+1:]
		switch option.Argument {
		case NoArgument:
			given = append(given, Given{Name: option.Long})
			continue
		case Required: // in this word or the next
			if value == "" && len(rest) == 0 {
				return nil, nil, g.usage("option requires an argument -- '%c'", letters[i])
			}
			if value == "" {
				value, rest = rest[0], rest[1:]
			}
		}
		return append(given, Given{option.Long, value}), rest, nil
	}
	return given, rest, nil
}

// letter finds an option by its letter.
func (g Getopt) letter(c byte) (Option, bool) {
	for _, option := range g.Options {
		if option.Short == c {
			return option, true
		}
	}
	return Option{}, false
}
