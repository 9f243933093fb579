package slurm

// squeue and sinfo print columns chosen by letters, and sacct and sacctmgr columns chosen by names. All four print a
// format: columns with texts between them.

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// null is the text that Slurm's commands print for a missing value.
const null = "(null)"

// A column is a column of lists whose lines show an R.
type column[R any] struct {
	letter byte           // in -o of squeue and sinfo; 0: none
	name   string         // in -O of squeue, and in formats of sacct and sacctmgr, in any case
	header string         // printed above the column
	width  int            // the default for sacct and sacctmgr; negative: left-aligned
	uncut  bool           // its values are never truncated
	value  func(R) string // in full length
}

// lettered returns a column of squeue or sinfo.
func lettered[R any](letter byte, name, header string, value func(R) string) column[R] {
	return column[R]{letter: letter, name: name, header: header, value: value}
}

// named returns a column of sacct or sacctmgr.
func named[R any](name string, width int, value func(R) string) column[R] {
	return column[R]{name: name, header: name, width: width, value: value}
}

// uncut returns a column whose values are never truncated.
func uncut[R any](c column[R]) column[R] {
	c.uncut = true
	return c
}

// same returns the value of a column that is the same in all lines.
func same[R any](text string) func(R) string { return func(R) string { return text } }

// A place is the position of a column in a line.
type place[R any] struct {
	*column[R]
	before string // text between it and the previous column
	size   int    // width; 0: as wide as its text
	right  bool   // right-aligned
	fits   bool   // as wide as its widest text
}

// at returns a place for the column, with a width that is negative for left alignment.
func (c *column[R]) at(width int) place[R] {
	return place[R]{column: c, size: max(width, -width), right: width > 0}
}

// cell returns a text as wide as its column. plus marks truncated texts with a plus sign.
func (p place[R]) cell(text string, plus bool) string {
	blanks := strings.Repeat(" ", max(0, p.size-len(text)))
	switch {
	case p.size == 0:
		return text
	case len(text) > p.size && plus:
		return text[:p.size-1] + "+"
	case len(text) > p.size && !p.uncut:
		return text[:p.size]
	case p.right:
		return blanks + text
	}
	return text + blanks
}

// A format is the format of lines that show an R.
type format[R any] struct {
	places []place[R]
	after  string // text after the last column
	sheet  bool   // truncated texts end with a plus sign, and the header is underlined
}

// line returns a line with the given texts.
func (f format[R]) line(text func(place[R]) string) string {
	var b strings.Builder
	for _, p := range f.places {
		b.WriteString(p.before + p.cell(text(p), f.sheet))
	}
	return b.String() + f.after + "\n"
}

// header returns the names of columns, and a rule below them if the format is a sheet.
func (f format[R]) header() string {
	text := f.line(func(p place[R]) string {
		if p.uncut && p.size > 0 {
			return cut(p.header, p.size)
		}
		return p.header
	})
	if f.sheet {
		text += f.line(func(p place[R]) string { return strings.Repeat("-", p.size) })
	}
	return text
}

// write prints a list. title is the name of the cluster, if one was given.
func (f format[R]) write(w io.Writer, q *query, title string, list []R, now time.Time) error {
	var b strings.Builder
	if !q.noHeader {
		if title != "" {
			b.WriteString("CLUSTER: " + title + "\n")
		}
		if q.long {
			b.WriteString(now.Format("Mon Jan 02 15:04:05 2006") + "\n")
		}
		b.WriteString(f.header())
	}
	for _, r := range list {
		b.WriteString(f.line(func(p place[R]) string { return p.value(r) }))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// byLetters parses the argument of -o for squeue and sinfo: columns given as letters, such as "%.18i", with text
// between them. "%%" produces nothing, as in Slurm. The characters in marks may precede a width; what names the listed
// items in the error for an unknown letter.
func byLetters[R any](text, marks, what string, columns []column[R]) (f format[R], err error) {
	for {
		before, rest, found := strings.Cut(text, "%")
		f.after += before
		if !found || rest == "" {
			return f, nil
		}
		p := place[R]{right: rest[0] == '.', fits: rest[0] == '#'}
		rest = strings.TrimLeft(rest, marks)
		letter := strings.TrimLeft(rest, "0123456789")
		p.size, _ = strconv.Atoi(cut(rest[:len(rest)-len(letter)], 4))
		if letter == "" { // a width without a letter
			return f, nil
		}
		text = letter[1:]
		if letter[0] == '%' { // not even the % is printed
			continue
		}
		i := slices.IndexFunc(columns, func(c column[R]) bool { return c.letter == letter[0] && c.letter != 0 })
		if i < 0 { // like Slurm, at the first one
			return f, fmt.Errorf("Invalid %s format specification: %c", what, letter[0]) // Slurm's wording
		}
		p.column, p.before, f.after = &columns[i], f.after, ""
		f.places = append(f.places, p)
	}
}

// byNames parses a format of sacct and sacctmgr: names of columns, possibly abbreviated, followed by "%20" or "%-20"
// for a different width. unknown is the error for an unknown name. A format without names is empty.
func byNames[R any](list, unknown string, columns []column[R]) (places []place[R], err error) {
	for one := range strings.SplitSeq(list, ",") {
		name, size, _ := strings.Cut(strings.TrimSpace(one), "%")
		if name == "" {
			continue
		}
		var found *column[R]
		for i := range columns {
			full := strings.ReplaceAll(columns[i].name, " ", "")
			switch {
			case strings.EqualFold(full, name): // even if it is a prefix of another
				found = &columns[i]
			case found == nil && strings.EqualFold(cut(full, len(name)), name):
				found = &columns[i]
			}
		}
		if found == nil {
			return nil, fmt.Errorf(unknown, name)
		}
		width, err := strconv.Atoi(cut(size, 5))
		if err != nil {
			width = found.width
		}
		places = append(places, found.at(width))
	}
	return places, nil
}

// inOrder returns the places of all columns, with their default widths.
func inOrder[R any](columns []column[R]) (places []place[R]) {
	for i := range columns {
		places = append(places, columns[i].at(columns[i].width))
	}
	return places
}

// sheetOf returns the format of sacct and sacctmgr: aligned columns, or for programs (-p, -P) texts of any length
// between delimiters.
func sheetOf[R any](q *query, places []place[R]) format[R] {
	f := format[R]{places: slices.Clone(places), after: " ", sheet: true}
	between := " "
	if q.parsable {
		f.after, f.sheet, between = "", false, q.delimiter
	}
	if q.parsable && q.trailing {
		f.after = q.delimiter
	}
	for i := range f.places {
		if i > 0 {
			f.places[i].before = between
		}
		if q.parsable {
			f.places[i].size = 0
		}
	}
	return f
}

// cut returns at most length bytes of a text.
func cut(text string, length int) string { return text[:min(len(text), length)] }

// moment formats a time, or returns none for the zero time.
func moment(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return notation.Moment(t)
}
