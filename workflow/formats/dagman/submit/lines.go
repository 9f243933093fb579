package submit

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
)

// Lines reads a text line by line like HTCondor's tools: a backslash at the end of a line joins it with the next one;
// blank lines and lines that begin with # are skipped. A comment between joined lines continues the join only if it
// also ends with a backslash; a blank line ends the join.
type Lines struct {
	r    *bufio.Reader
	at   workflow.Place // place of the last line read
	most int64          // maximum bytes of a joined line
}

// NewLines returns the lines of r; name is the file name for places. most is the maximum length in bytes of a line,
// including the lines joined to it.
func NewLines(r io.Reader, name string, most int64) *Lines {
	return &Lines{r: bufio.NewReader(r), at: workflow.Place{File: name}, most: most}
}

// A Line is a line together with the lines joined to it, without leading and trailing blanks.
type Line struct {
	Text string
	At   workflow.Place // place of its beginning
}

// Here returns the place of the last line read.
func (l *Lines) Here() workflow.Place { return l.at }

// Next returns the next line. At the end of the text the error is io.EOF.
func (l *Lines) Next() (Line, error) {
	var joined Line
	var all strings.Builder
	for {
		text, err := l.physical()
		if errors.Is(err, io.EOF) && joined.At.Line > 0 {
			joined.Text = strings.TrimSpace(all.String())
			return joined, nil
		}
		if err != nil {
			return joined, err
		}
		comment := strings.HasPrefix(text, "#")
		if joined.At.Line == 0 && (text == "" || comment) {
			continue
		}
		if comment && strings.HasSuffix(text, `\`) {
			text = `\`
		} else if comment {
			text = ""
		}
		if joined.At.Line == 0 {
			joined.At = l.at
		}
		head, on := strings.CutSuffix(text, `\`)
		if int64(all.Len()+len(head)) > l.most {
			return joined, l.at.Errorf("a line is %w", &input.TooLongError{Limit: l.most})
		}
		if all.WriteString(head); !on {
			joined.Text = strings.TrimSpace(all.String())
			return joined, nil
		}
	}
}

// physical returns the next line of the text, even if it would be skipped, without leading and trailing blanks.
func (l *Lines) physical() (string, error) {
	var text []byte
	for {
		part, err := l.r.ReadSlice('\n')
		text = append(text, part...)
		if int64(len(text)) > l.most {
			l.at.Line++
			return "", l.at.Errorf("a line is %w", &input.TooLongError{Limit: l.most})
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || len(text) == 0) {
			return "", err
		}
		break
	}
	l.at.Line++
	line := string(text)
	if l.at.Line == 1 {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	if !utf8.ValidString(line) { // no other format could represent the line, and a task would get a different value
		return "", l.at.Errorf("the line is not in UTF-8")
	}
	return strings.TrimSpace(line), nil
}
