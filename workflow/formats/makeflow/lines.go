package makeflow

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
)

// lines reads a text as logical lines: a line that ends with a backslash, or within an open quote, is continued by the
// next line. Comments are removed. Escapes are kept, because their meaning depends on the kind of line.
type lines struct {
	name string
	r    *bufio.Reader
	most int64 // maximum bytes of a logical line
	line int   // number of the current line, from 1
	read int64
}

// A line is one logical line.
type line struct {
	text      string
	at        workflow.Place // place of its beginning
	commented bool           // the line ended with a comment
}

func newLines(r io.Reader, name string, most int64) *lines {
	return &lines{name: name, r: bufio.NewReaderSize(r, 64<<10), most: most, line: 1}
}

// here returns the current place.
func (l *lines) here() workflow.Place { return workflow.Place{File: l.name, Line: l.line} }

// next returns the next logical line; ok is false at the end of the text.
func (l *lines) next() (found line, ok bool, err error) {
	found, ok, err = l.logical()
	if err == nil && !utf8.ValidString(found.text) { // no other format could represent the text
		err = found.at.Errorf("the line is not UTF-8; convert the file")
	}
	return found, ok, err
}

func (l *lines) logical() (_ line, ok bool, err error) {
	found := line{at: l.here()}
	var text strings.Builder
	var quote byte // the open quote; 0: none
	before := l.read
	for {
		c, err := l.one()
		if errors.Is(err, io.EOF) {
			switch {
			case quote != 0:
				return found, false, found.at.Errorf("a quote (%c) is not closed before the end of the file", quote)
			case l.read == 0:
				return found, false, workflow.Place{File: l.name}.Errorf("the file is empty")
			}
			found.text = text.String()
			return found, l.read > before, nil
		}
		if err != nil {
			return found, false, l.broken(err)
		}
		if l.read++; l.read-before > l.most {
			return found, false, found.at.Errorf("a line, with its continuations and what it quotes, is %w",
				&input.TooLongError{Limit: l.most})
		}
		switch {
		case c == '\n' && (quote == 0 || found.commented):
			l.line++
			found.text = text.String()
			return found, true, nil
		case found.commented:
			continue
		case c == '\\':
			text.WriteByte(c)
			if c, err = l.one(); err != nil {
				continue // the next iteration handles it again
			}
			l.read++
		case c == quote:
			quote = 0
		case quote != 0:
		case c == '\'', c == '"':
			quote = c
		case c == '#':
			found.commented = true
			continue
		}
		if c == '\n' {
			l.line++
		}
		text.WriteByte(c)
	}
}

// one returns the next byte; a two-byte line ending is returned as one byte.
func (l *lines) one() (byte, error) {
	c, err := l.r.ReadByte()
	if c != '\r' || err != nil {
		return c, err
	}
	if next, err := l.r.Peek(1); err == nil && next[0] == '\n' {
		return l.r.ReadByte()
	}
	return c, nil
}

// broken returns the error to report for a text that is too long or cannot be read.
func (l *lines) broken(err error) error {
	if tooLong, ok := errors.AsType[*input.TooLongError](err); ok {
		return corral.ErrorAt(corral.Invalid, l.name, "the workflow is %w", tooLong)
	}
	return corral.ErrorAt(corral.Invalid, l.name, "reading: %w", err)
}
