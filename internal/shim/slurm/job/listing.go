package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// squeue, sacct and sinfo differ in what they list. How their words are read, what all of them are asked, and how a
// line is made of columns is here.

// A command says how the words of one are read.
type command struct {
	notation.Getopt
	stray   string // its words for one that is no option
	loose   string // option whose argument may also follow in the next word, although getopt knows it as optional
	refused string // options that cannot be had, with blanks between them
	why     string // they cannot
}

// A listing is what every command that lists may be asked.
type listing struct {
	noHeader bool
	long     bool   // the time stands above
	Other    string // "version", "help", "usage" or "helpformat", and nothing else is wanted
}

// read reads a command line. Options that are not common to all go to take, in their order.
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

// top begins what squeue and sinfo print.
func (l *listing) top(b *strings.Builder, now time.Time) {
	if l.long && !l.noHeader {
		b.WriteString(now.Format("Mon Jan 02 15:04:05 2006") + "\n")
	}
}

// A place is where a column of type C stands in a line, with the text before it.
type place[C any] struct {
	before string // between it and the last column
	column *C
	width  int  // 0: as wide as its text
	right  bool // a dot stood before the width
	fits   bool // a # did: it is as wide as its widest text
}

// parseFormat reads what follows -o of squeue and sinfo: columns by their letters, as in "%.18i", with text between
// them. after is the text behind the last of them. Of "%%" nothing is left, as with Slurm. marks may stand before a
// width; what is listed is in the error for a letter that no column has.
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
		if letter == "" { // a width, and nothing behind it
			return list, after, nil
		}
		format = letter[1:]
		if letter[0] == '%' { // not even the %
			continue
		}
		for i := range columns {
			if letterOf(&columns[i]) == letter[0] && letter[0] != 0 {
				p.column = &columns[i]
			}
		}
		if p.column == nil { // as Slurm, at the first
			// Slurm's words
			return nil, "", fmt.Errorf("Invalid %s format specification: %c", what, letter[0])
		}
		p.before, after = after, ""
		list = append(list, p)
	}
}

// A sheet is how sacct and sacctmgr write: in columns, in which a text that is too long ends with a plus sign; or, for
// programs, fields as long as they are.
type sheet struct {
	parsable  bool
	delimiter string // between fields
	trailing  bool   // also behind the last
}

// A span is a text and the width of its column, to the left if that is negative.
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

// header writes the names of columns, and a rule below them.
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
