package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// squeue, sacct and sinfo list different items. This file contains their common parts: parsing their command lines,
// their common options, and building a line from columns.

// A command describes how the command line of one command is parsed.
type command struct {
	notation.Getopt
	stray   string // its message for a word that is not an option
	loose   string // option with an optional argument that may also be in the next word
	refused string // unsupported options, separated by blanks
	why     string // why they are unsupported
}

// A listing holds the options of all listing commands.
type listing struct {
	noHeader bool
	long     bool   // print the time at the top
	Other    string // "version", "help", "usage" or "helpformat": only this is requested
}

// read parses a command line. It calls take, in order, for each option that is not common to all commands.
func (l *listing) read(c *command, words []string, take func(notation.Given) error) error {
	given, rest, err := c.Parse(words)
	if err != nil {
		return err
	}
	if len(rest) > 0 && slices.Contains(given, notation.Given{Name: c.loose}) {
		given, rest = append(given, notation.Given{Name: c.loose, Value: rest[0]}), rest[1:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("%s %s", c.stray, rest[0])
	}
	refused := strings.Fields(c.refused)
	for _, g := range given {
		switch {
		case slices.Contains(refused, g.Name):
			return &notation.Unsupported{What: "--" + g.Name, Why: c.why}
		case g.Name == "noheader":
			l.noHeader = true
		case g.Name == "long":
			l.long = true
		case slices.Contains([]string{"version", "help", "usage", "helpformat"}, g.Name):
			l.Other = g.Name
		default:
			if err := take(g); err != nil {
				return err
			}
		}
	}
	return nil
}

// top writes the first lines of squeue and sinfo.
func (l *listing) top(b *strings.Builder, now time.Time) {
	if l.long && !l.noHeader {
		b.WriteString(now.Format("Mon Jan 02 15:04:05 2006") + "\n")
	}
}

// A place is the position of a column of type C in a line, together with the text before it.
type place[C any] struct {
	before string // text between it and the previous column
	column *C
	width  int  // 0: as wide as its text
	right  bool // the width was preceded by a dot
	fits   bool // it was preceded by a #: the column is as wide as its widest text
}

// parseFormat parses the argument of -o for squeue and sinfo: columns given as letters, such as "%.18i", with text
// between them. after is the text after the last column. "%%" produces nothing, as in Slurm. The characters in marks
// may precede a width; what names the listed items in the error for an unknown letter.
func parseFormat[C any](format, marks, what string, columns []C, letterOf func(*C) byte) (
	list []place[C], after string, err error,
) {
	for {
		before, rest, found := strings.Cut(format, "%")
		after += before
		if !found || rest == "" {
			return list, after, nil
		}
		p := place[C]{right: rest[0] == '.', fits: rest[0] == '#'}
		rest = strings.TrimLeft(rest, marks)
		letter := strings.TrimLeft(rest, "0123456789")
		p.width, _ = strconv.Atoi(cut(rest[:len(rest)-len(letter)], 4))
		if letter == "" { // a width without a letter
			return list, after, nil
		}
		format = letter[1:]
		if letter[0] == '%' { // not even the % is printed
			continue
		}
		for i := range columns {
			if letterOf(&columns[i]) == letter[0] && letter[0] != 0 {
				p.column = &columns[i]
			}
		}
		if p.column == nil { // like Slurm, at the first one
			// Slurm's wording
			return nil, "", fmt.Errorf("Invalid %s format specification: %c", what, letter[0])
		}
		p.before, after = after, ""
		list = append(list, p)
	}
}

// A sheet is the output format of sacct and sacctmgr: either columns, in which a truncated text ends with a plus sign,
// or, for programs, fields of any length.
type sheet struct {
	parsable  bool
	delimiter string // between fields
	trailing  bool   // also after the last field
}

// A span is a text and the width of its column, which is negative for left alignment.
type span struct {
	text  string
	width int
}

// line writes a line.
func (s sheet) line(b *strings.Builder, spans []span) {
	for i, x := range spans {
		width := max(x.width, -x.width)
		switch {
		case !s.parsable:
			if len(x.text) > width && width > 0 {
				x.text = x.text[:width-1] + "+"
			}
			b.WriteString(cell(x.text, width, x.width > 0) + " ")
		case s.trailing || i < len(spans)-1:
			b.WriteString(x.text + s.delimiter)
		default:
			b.WriteString(x.text)
		}
	}
	b.WriteByte('\n')
}

// header writes the names of columns, with a rule below them.
func (s sheet) header(b *strings.Builder, names []span) {
	s.line(b, names)
	if s.parsable {
		return
	}
	rules := slices.Clone(names)
	for i, x := range rules {
		rules[i].text = strings.Repeat("-", max(x.width, -x.width))
	}
	s.line(b, rules)
}
