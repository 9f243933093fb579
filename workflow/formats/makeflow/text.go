package makeflow

import (
	"errors"
	"fmt"
	"strings"

	"github.com/corral-pilot/corral/internal/kit/input"
)

// In three kinds of text, quotes, backslashes and substitutions have different meanings, as in Makeflow's lexer:
//
//   - the value of a variable: quotes are kept, and values of other variables are inserted literally;
//   - a command: quotes are kept for the shell; outside quotes the value of a variable is parsed again, inside double
//     quotes it is inserted literally; consecutive blanks become one blank;
//   - a list of files: quotes group a name and are removed; the value of a variable is parsed again.
//
// A backslash makes the next character literal and is removed. At the end of a line it becomes a blank; in values and
// inside double quotes it forms control characters with some letters.

// Limits on expanded texts.
const (
	maxExpanded = 1 << 20  // maximum bytes of a value and of a command
	maxValues   = 16 << 20 // maximum bytes of values that one line inserts, including nested variables
	maxDepth    = 32       // maximum nesting of variables, as in Makeflow
	maxNames    = 1000_000 // maximum number of files that one line inserts
)

// lookup returns the value of a variable.
type lookup func(name string) (value string, ok bool)

// An expansion inserts the values of variables into one text, and limits the total size of these values.
type expansion struct {
	vars  lookup
	spent int // bytes of maxValues used so far
}

// tooLong returns the error for a text that exceeds its limit when its variables are expanded.
func tooLong(what string, limit int64) error {
	return fmt.Errorf("%s is %w", what, &input.TooLongError{Limit: limit})
}

// value expands the value of a variable.
func value(text string, vars lookup) (string, error) {
	var b strings.Builder
	e := &expansion{vars: vars}
	text = strings.TrimLeft(text, " \t")
	for i := 0; i < len(text); {
		n, err := e.inValue(&b, text[i:])
		if err != nil {
			return "", err
		}
		if i += n; b.Len() > maxExpanded {
			return "", tooLong("the value", maxExpanded)
		}
	}
	return b.String(), nil
}

// inValue expands the beginning of text by the rules for values, and returns the number of bytes consumed.
func (e *expansion) inValue(b *strings.Builder, text string) (n int, err error) {
	switch c := text[0]; {
	case c == '$':
		v, n, err := e.substitution(text)
		b.WriteString(v)
		return n, err
	case c == '\'':
		return singleQuoted(b, text), nil
	case c == '\\' && len(text) > 1:
		b.WriteByte(control(text[1]))
		return 2, nil
	default:
		b.WriteByte(c)
		return 1, nil
	}
}

// control returns the character for an escaped letter.
func control(c byte) byte {
	if i := strings.IndexByte("abfnrtv\n", c); i >= 0 {
		return "\a\b\f\n\r\t\v "[i]
	}
	return c
}

// singleQuoted copies the single-quoted beginning of text, including its quotes.
func singleQuoted(b *strings.Builder, text string) (n int) {
	b.WriteByte('\'')
	n = 1
	for n < len(text) && text[n] != '\'' {
		n += unescaped(b, text[n:])
	}
	b.WriteByte('\'')
	return min(n+1, len(text))
}

// unescaped copies one character, which may be escaped.
func unescaped(b *strings.Builder, text string) (n int) {
	if text[0] != '\\' || len(text) == 1 {
		b.WriteByte(text[0])
		return 1
	}
	if text[1] == '\n' {
		b.WriteByte(' ')
	} else {
		b.WriteByte(text[1])
	}
	return 2
}

// doubleQuoted expands the double-quoted beginning of text, including its quotes.
func (e *expansion) doubleQuoted(b *strings.Builder, text string) (n int, err error) {
	b.WriteByte('"')
	n = 1
	for n < len(text) && text[n] != '"' {
		if text[n] == '\'' { // literal
			b.WriteByte('\'')
			n++
			continue
		}
		more, err := e.inValue(b, text[n:])
		if err != nil {
			return 0, err
		}
		n += more
	}
	b.WriteByte('"')
	return min(n+1, len(text)), nil
}

// notInName lists the characters that end the name of a variable.
const notInName = "\\\"'$#\n\t ,.-(){},[]<>=+!?/:;|&@*%^`~"

// substitution returns the value of the variable at the beginning of text: $NAME, $(NAME) or ${NAME}.
func (e *expansion) substitution(text string) (v string, n int, err error) {
	closer, begin := "", 1
	switch {
	case strings.HasPrefix(text, "$("):
		closer, begin = ")", 2
	case strings.HasPrefix(text, "${"):
		closer, begin = "}", 2
	}
	name := text[begin:]
	if end := strings.IndexAny(name, notInName); end >= 0 {
		name = name[:end]
	}
	n = begin + len(name)
	switch {
	case closer != "" && !strings.HasPrefix(text[n:], closer):
		return "", 0, fmt.Errorf("%.40q: %q does not close the name of a variable", text, closer)
	case name == "":
		return "", 0, fmt.Errorf("%.40q: a variable name must follow $; automatic variables such as $@ are not "+
			"part of Makeflow, and \\$ is for the shell", text)
	}
	v, ok := e.vars(name)
	if !ok {
		return "", 0, fmt.Errorf("variable %.80q is defined neither before this line nor in the environment", name)
	}
	if e.spent += len(v) + 1; e.spent > maxValues {
		return "", 0, tooLong("the expansion of variables", maxValues)
	}
	return v, n + len(closer), nil
}

// command expands a command.
func command(text string, vars lookup) (string, error) {
	var b strings.Builder
	e := &expansion{vars: vars}
	err := e.inCommand(&b, text, 0)
	return strings.Trim(b.String(), " "), err
}

func (e *expansion) inCommand(b *strings.Builder, text string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("variables are nested more than %d deep", maxDepth)
	}
	for i := 0; i < len(text); {
		if b.Len() > maxExpanded {
			return tooLong("the command", maxExpanded)
		}
		switch c := text[i]; {
		case c == ' ' || c == '\t' || strings.HasPrefix(text[i:], "\\\n"):
			if !strings.HasSuffix(b.String(), " ") {
				b.WriteByte(' ')
			}
			i++
			if c == '\\' {
				i++
			}
		case c == '$':
			v, n, err := e.substitution(text[i:])
			if err == nil {
				err = e.inCommand(b, v, depth+1)
			}
			if err != nil {
				return err
			}
			i += n
		case c == '"':
			n, err := e.doubleQuoted(b, text[i:])
			if err != nil {
				return err
			}
			i += n
		case c == '\'':
			i += singleQuoted(b, text[i:])
		default:
			i += unescaped(b, text[i:])
		}
	}
	return nil
}

// A fileList holds the files of a rule, which precede its command.
type fileList struct {
	targets, sources []string

	expansion
	names int  // number of files inserted by variables
	colon bool // the colon has been read
	word  strings.Builder
	open  bool // a word has begun
}

// files parses a list of files.
func files(text string, vars lookup) (*fileList, error) {
	f := &fileList{expansion: expansion{vars: vars}}
	if err := f.take(text, 0); err != nil {
		return nil, err
	}
	f.end(0)
	return f, nil
}

func (f *fileList) take(text string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("variables are nested more than %d deep", maxDepth)
	}
	for i := 0; i < len(text); {
		if f.names > maxNames {
			return fmt.Errorf("variables stand for more than %d files", maxNames)
		}
		switch c := text[i]; {
		case c == ' ' || c == '\t':
			f.end(depth)
			i++
		case strings.HasPrefix(text[i:], "\\\n"):
			f.end(depth)
			i += 2
		case c == ':' && f.colon:
			return errors.New("there is a second colon; write \\: in the name of a file")
		case c == ':':
			f.end(depth)
			f.colon = true
			i++
		case strings.HasPrefix(text[i:], "->"):
			return errors.New("remote names (file->name) are not supported; " +
				"the command has to use the name of the file")
		case c == '$':
			v, n, err := f.substitution(text[i:])
			if err == nil {
				err = f.take(v, depth+1)
			}
			if err != nil {
				return err
			}
			i += n
		case c == '"' || c == '\'':
			n, err := f.quoted(text[i:])
			if err != nil {
				return err
			}
			i += n
		default:
			f.open = true
			i += unescaped(&f.word, text[i:])
		}
	}
	return nil
}

// quoted adds the quoted beginning of text to the current name.
func (f *fileList) quoted(text string) (n int, err error) {
	var b strings.Builder
	if text[0] == '\'' {
		n = singleQuoted(&b, text)
	} else if n, err = f.doubleQuoted(&b, text); err != nil {
		return 0, err
	}
	f.word.WriteString(b.String()[1 : b.Len()-1])
	f.open = true
	return n, nil
}

// end completes the current name, which is in the line itself (depth 0) or in a variable.
func (f *fileList) end(depth int) {
	if f.open && depth > 0 {
		f.names++
	}
	if f.open && f.colon {
		f.sources = append(f.sources, f.word.String())
	} else if f.open {
		f.targets = append(f.targets, f.word.String())
	}
	f.word.Reset()
	f.open = false
}

// unquotedIndex returns the index of the first of the given characters outside quotes, or -1.
func unquotedIndex(text, chars string) int {
	var quote byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == quote:
			quote = 0
		case quote != 0:
		case c == '\'', c == '"':
			quote = c
		case strings.IndexByte(chars, c) >= 0:
			return i
		}
	}
	return -1
}
