package dax

import (
	"errors"
	"strings"
)

// words splits arguments like a shell: blanks end a word, except between quotes, and a backslash outside single quotes
// makes the next character literal. Names of files are inserted literally.
type words struct {
	done    []string
	word    strings.Builder
	open    bool // a word has begun, which may be empty
	quote   rune // the open quote; 0: none
	escaped bool
	bytes   int // number of bytes of the text so far
}

// maxArguments is the maximum length of the arguments of a job in bytes: Linux does not start a program with more than
// 2 MiB of arguments and environment. A word of one letter occupies 40 times as much memory as text.
const maxArguments = 2 << 20

// text adds a piece of text.
func (w *words) text(s string) {
	if w.bytes += len(s); w.bytes > maxArguments {
		return
	}
	for _, c := range s {
		switch {
		case w.escaped:
			if w.quote == '"' && c != '"' && c != '\\' {
				w.word.WriteByte('\\')
			}
			w.word.WriteRune(c)
			w.escaped = false
		case c == '\\' && w.quote != '\'':
			w.escaped, w.open = true, true
		case w.quote != 0 && c == w.quote:
			w.quote = 0
		case w.quote == 0 && (c == '"' || c == '\''):
			w.quote, w.open = c, true
		case w.quote == 0 && strings.ContainsRune(" \t\r\n", c):
			w.end()
		default:
			w.word.WriteRune(c)
			w.open = true
		}
	}
}

// name adds the name of a file.
func (w *words) name(s string) {
	w.word.WriteString(s)
	w.open, w.escaped = true, false
}

func (w *words) end() {
	if w.open {
		w.done = append(w.done, w.word.String())
	}
	w.word.Reset()
	w.open = false
}

// all returns the words.
func (w *words) all() ([]string, error) {
	if w.bytes > maxArguments {
		return nil, errors.New("it is longer than 2 MiB, the maximum for starting a program")
	}
	if w.quote != 0 || w.escaped {
		return nil, errors.New("a quote is not closed, or a backslash is at the end")
	}
	w.end()
	return w.done, nil
}
