package notation

import (
	"errors"
	"fmt"
	"strings"
)

// An Option is one that a command of Slurm's knows.
type Option struct {
	Long     string // without its hyphens
	Short    byte   // 0: none
	Argument Argument
}

// An Argument says whether an option has one.
type Argument int

// The kinds of options. An optional argument stands in the same word: --export=ALL, or not at all.
const (
	NoArgument Argument = iota
	Required
	Optional
)

// Options reads a list of options that need no more words: "all|a name|n= jobs|j?" has one without an argument, one
// with, and one whose argument is optional.
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

// A Given is an option that was given. A word that is no option has no Name, and is the Value.
type Given struct{ Name, Value string }

// A UsageError is a command line that a command does not understand, in getopt's words, complete with the command's
// name.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

// Message returns what a command prints on its standard error, without a newline at the end, because of err.
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

// A Getopt reads command lines as getopt_long does: -J name, -Jname, --job-name=name, --job-name name, -hn, and long
// options by the beginnings of their names.
type Getopt struct {
	Command string   // the name with which its messages begin
	Options []Option // in the order in which an ambiguous one is answered
	Ordered bool     // the first word that is no option ends them: what follows is another command's
}

// Parse reads words, without the command's name. The options come in their order, by their long names; rest has all
// other words.
func (g Getopt) Parse(words []string) (given []Given, rest []string, err error) {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case word == "--": // what follows is no option, whatever it looks like
			return given, append(rest, words...), nil
		case strings.HasPrefix(word, "--"):
			given, words, err = g.long(given, word, words)
		case len(word) > 1 && word[0] == '-': // a hyphen alone is a file
			given, words, err = g.short(given, word[1:], words)
		case g.Ordered: // the script, and what follows is its own
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

// long reads --name, --name=value, or --name and its value in the next word.
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

// find finds an option by its name, or by a beginning of it that no other has.
func (g Getopt) find(word, name string) (Option, error) {
	var found []Option
	for _, option := range g.Options {
		if option.Long == name {
			return option, nil // though it begins another
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

// short reads letters behind a single hyphen, the last of which may have an argument.
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
		case Required: // here or in the next word
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
