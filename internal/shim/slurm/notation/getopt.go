package notation

import (
	"errors"
	"fmt"
	"strings"
)

// A Command describes the command line of one of Slurm's commands, whose options fill in a T. It parses like
// getopt_long: -J name, -Jname, --job-name=name, --job-name name, -hn, and abbreviated long options.
type Command[T any] struct {
	Name    string      // the prefix of its messages
	Ordered bool        // options end at the first word that is not an option
	Options []Option[T] // in the order in which ambiguous options are listed
}

// An Option is an option of a command, or several options with the same effect.
type Option[T any] struct {
	// Names are separated by blanks. "all|a" has no argument, "name|n=" has one, and "jobs|j?" may have one, which must
	// be in the same word, as in --jobs=7. The letter is optional.
	Names     string
	Set       Effect[T] // nil: the option is accepted, but has no effect
	Variables string    // environment variables that may contain its argument, separated by blanks
}

// An Effect stores the argument of an option.
type Effect[T any] func(*T, Given) error

// A Given is an option that was given.
type Given struct {
	Name, Value string // the long name
	Variable    string // the environment variable that contains the option; empty: the command line or the script
}

// String formats an option as its user wrote it.
func (g Given) String() string {
	switch {
	case g.Variable != "":
		return g.Variable + "=" + g.Value
	case g.Value == "":
		return "--" + g.Name
	}
	return "--" + g.Name + "=" + strings.TrimSpace(g.Value)
}

// Refuse returns the error for an option that Corral does not support, with this argument or at all.
func (g Given) Refuse(why string) error { return &Unsupported{What: g.String(), Why: why} }

// Refuse returns the Effect of an option that is not supported.
func Refuse[T any](why string) Effect[T] {
	return func(_ *T, g Given) error { return g.Refuse(why) }
}

// Text returns the Effect of an option whose argument is a text.
func Text[T any](field func(*T) *string) Effect[T] {
	return func(t *T, g Given) error { *field(t) = g.Value; return nil }
}

// List returns the Effect of an option whose argument is a list separated by commas.
func List[T any](field func(*T) *[]string) Effect[T] {
	return func(t *T, g Given) error { *field(t) = strings.Split(g.Value, ","); return nil }
}

// On returns the Effect of an option without an argument.
func On[T any](field func(*T) *bool) Effect[T] {
	return func(t *T, _ Given) error { *field(t) = true; return nil }
}

// Apply applies the effects of options in order, until one returns an error.
func (c Command[T]) Apply(t *T, given ...Given) error {
	for _, g := range given {
		f, err := c.find(g.Name, g.Name)
		if err == nil && f.Set != nil {
			err = f.Set(t, g)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Read parses words and applies their options. It returns the other words.
func (c Command[T]) Read(t *T, words []string) (rest []string, err error) {
	given, rest, err := c.Parse(words)
	if err == nil {
		err = c.Apply(t, given...)
	}
	return rest, err
}

// Environment returns the options that are given by environment variables, in the order of the command's options.
func (c Command[T]) Environment(values map[string]string) (given []Given) {
	for f := range c.flags {
		for name := range strings.FieldsSeq(f.Variables) {
			if value, ok := values[name]; ok {
				given = append(given, Given{Name: f.long, Value: value, Variable: name})
			}
		}
	}
	return given
}

// Parse parses words, without the command's name. It returns the options in order, by their long names; rest contains
// all other words.
func (c Command[T]) Parse(words []string) (given []Given, rest []string, err error) {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case word == "--": // none of the following words is an option
			return given, append(rest, words...), nil
		case strings.HasPrefix(word, "--"):
			given, words, err = c.long(given, word, words)
		case len(word) > 1 && word[0] == '-': // a single hyphen is a file
			given, words, err = c.short(given, word[1:], words)
		case c.Ordered: // the script; the rest belongs to it
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

// A flag is one name of an Option.
type flag[T any] struct {
	*Option[T]
	long     string
	short    string // a letter; empty: none
	argument string // "=" required, "?" optional; empty: none
}

// flags yields the names of all options.
func (c Command[T]) flags(yield func(flag[T]) bool) {
	for i := range c.Options {
		o := &c.Options[i]
		for text := range strings.FieldsSeq(o.Names) {
			names := strings.TrimRight(text, "=?")
			long, short, _ := strings.Cut(names, "|")
			if !yield(flag[T]{o, long, short, text[len(names):]}) {
				return
			}
		}
	}
}

// A UsageError is an invalid command line, in getopt's wording, including the command's name.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

func (c Command[T]) usage(format string, args ...any) error {
	return &UsageError{fmt.Sprintf("%s: %s\nTry \"%s --help\" for more information",
		c.Name, fmt.Sprintf(format, args...), c.Name)}
}

// long parses --name, --name=value, or --name with its value in the next word.
func (c Command[T]) long(given []Given, word string, rest []string) ([]Given, []string, error) {
	name, value, assigned := strings.Cut(word[2:], "=")
	f, err := c.find(name, word)
	switch {
	case err != nil:
		return nil, nil, err
	case f.argument == "" && assigned:
		return nil, nil, c.usage("option '--%s' doesn't allow an argument", f.long)
	case f.argument == "=" && !assigned:
		if len(rest) == 0 {
			return nil, nil, c.usage("option '--%s' requires an argument", f.long)
		}
		value, rest = rest[0], rest[1:]
	}
	return append(given, Given{Name: f.long, Value: value}), rest, nil
}

// find finds an option by its name, or by a unique prefix of it.
func (c Command[T]) find(name, word string) (flag[T], error) {
	var found []flag[T]
	names := ""
	for f := range c.flags {
		if f.long == name {
			return f, nil // even if it is a prefix of another
		}
		if strings.HasPrefix(f.long, name) {
			found = append(found, f)
			names += " '--" + f.long + "'"
		}
	}
	switch len(found) {
	case 0:
		return flag[T]{}, c.usage("unrecognized option '%s'", word)
	case 1:
		return found[0], nil
	}
	return flag[T]{}, c.usage("option '%s' is ambiguous; possibilities:%s", word, names)
}

// short parses letters after a single hyphen; the last letter may have an argument.
func (c Command[T]) short(given []Given, letters string, rest []string) ([]Given, []string, error) {
	for i := range len(letters) {
		f, ok := c.letter(letters[i : i+1])
		if !ok {
			return nil, nil, c.usage("invalid option -- '%c'", letters[i])
		}
		value := letters[i+1:]
		switch f.argument {
		case "":
			given = append(given, Given{Name: f.long})
			continue
		case "=": // in this word or the next
			if value == "" && len(rest) == 0 {
				return nil, nil, c.usage("option requires an argument -- '%c'", letters[i])
			}
			if value == "" {
				value, rest = rest[0], rest[1:]
			}
		}
		return append(given, Given{Name: f.long, Value: value}), rest, nil
	}
	return given, rest, nil
}

// letter finds an option by its letter.
func (c Command[T]) letter(letter string) (found flag[T], ok bool) {
	for f := range c.flags {
		if f.short == letter {
			return f, true
		}
	}
	return found, false
}

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
