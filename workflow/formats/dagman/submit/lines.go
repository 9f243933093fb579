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

// Lines reads a text of HTCondor's line by line, as its tools do: a backslash at the end of a line joins the next one,
// blank lines and those that begin with # are passed over. One of these between lines that are joined joins them only
// if it ends with a backslash, too.
type Lines struct {
	r    *bufio.Reader
	at   workflow.Place // of the line that was read last
	most int64          // bytes of a joined line
}

// NewLines returns the lines of r; name is what places call it. A line with all that is joined to it may have most
// bytes.
func NewLines(r io.Reader, name string, most int64) *Lines {
	return &Lines{r: bufio.NewReader(r), at: workflow.Place{File: name}, most: most}
}

// A Line is a line with what was joined to it, without blanks at its ends.
type Line struct {
	Text string
	At   workflow.Place // of its beginning
}

// Here is the place of the line that was read last.
func (l *Lines) Here() workflow.Place { return l.at }

// Next returns the next line; its error is io.EOF at the end.
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

// physical returns the next line of the text, whatever it says, without blanks at its ends.
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
	if !utf8.ValidString(line) { // no other format could hold it, and a task would get something else
		return "", l.at.Errorf("the line is not in UTF-8")
	}
	return strings.TrimSpace(line), nil
}
