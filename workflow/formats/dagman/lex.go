package dagman

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/workflow/formats/dagman/submit"
)

// fields holds the text of a line that has not been processed yet.
type fields struct{ text string }

const blanks = " \t"

// next removes and returns the next word, or "" if no word is left.
func (f *fields) next() string {
	f.text = strings.TrimLeft(f.text, blanks)
	end := strings.IndexAny(f.text, blanks)
	if end < 0 {
		end = len(f.text)
	}
	word := f.text[:end]
	f.text = f.text[end:]
	return word
}

// rest removes and returns the remaining text.
func (f *fields) rest() string {
	text := strings.Trim(f.text, blanks)
	f.text = ""
	return text
}

// file removes and returns the name of a file, which may be in double quotes.
func (f *fields) file() string {
	f.text = strings.TrimLeft(f.text, blanks)
	if !strings.HasPrefix(f.text, `"`) {
		return f.next()
	}
	name, rest, _ := strings.Cut(f.text[1:], `"`)
	f.text = rest
	return name
}

// A syntaxError reports an error in one statement; in messages the name of the statement precedes the error.
type syntaxError struct{ text string }

func (e *syntaxError) Error() string { return e.text }

func wrong(format string, args ...any) error { return &syntaxError{fmt.Sprintf(format, args...)} }

// word removes and returns a required word; what describes the word in an error.
func (f *fields) word(what string) (string, error) {
	word := f.next()
	if word == "" {
		return "", wrong("%s is missing", what)
	}
	return word, nil
}

// number removes and returns an integer from least to most.
func (f *fields) number(what string, least, most int) (int, error) {
	word, err := f.word(what)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < least || n > most {
		return 0, wrong("%s is %.40q, want %d to %d", what, word, least, most)
	}
	return n, nil
}

// end returns an error if any words remain.
func (f *fields) end() error {
	if rest := f.rest(); rest != "" {
		return wrong("unexpected %.40q", rest)
	}
	return nil
}

// keyword returns the key by which the first word of a statement is looked up. In this word, - and _ are equivalent.
func keyword(word string) string { return strings.ReplaceAll(strings.ToUpper(word), "-", "_") }

// pairs removes and returns the macros of a VARS statement: NAME="VALUE" …, where the value may contain \" and \\.
// Values in single quotes, and values without quotes or blanks, are also accepted.
func (f *fields) pairs() ([]submit.Var, error) {
	var all []submit.Var
	for {
		text := strings.TrimLeft(f.text, blanks)
		if text == "" {
			break
		}
		name, value, ok := strings.Cut(text, "=")
		if name = strings.TrimRight(name, blanks); !ok || strings.ContainsAny(name, blanks) {
			return nil, wrong(`%.40q is not NAME="VALUE"`, text)
		}
		v := submit.Var{Name: name}
		var err error
		if v.Value, f.text, err = quoted(strings.TrimLeft(value, blanks)); err != nil {
			return nil, err
		}
		if attribute, ok := strings.CutPrefix(name, "+"); ok {
			v.Name = "my." + attribute
		}
		if !submit.IsName(strings.TrimPrefix(name, "+")) || strings.HasPrefix(strings.ToLower(name), "queue") {
			return nil, wrong("%.40q is not a valid macro name", name)
		}
		all = append(all, v)
	}
	if len(all) == 0 {
		return nil, wrong("a macro is missing")
	}
	return all, nil
}

// quoted returns the value at the beginning of text, and the rest of the text.
func quoted(text string) (value, rest string, err error) {
	if text == "" {
		return "", "", wrong("a value is missing")
	}
	quote := text[0]
	if quote != '"' && quote != '\'' {
		f := fields{text: text}
		return f.next(), f.text, nil
	}
	var plain strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			return plain.String(), text[i+1:], nil
		case c == '\\' && i+1 < len(text):
			i++
			plain.WriteByte(text[i])
		default:
			plain.WriteByte(c)
		}
	}
	return "", "", wrong("the value of a macro has no closing quote")
}
