package cli

// A listing defines, once for each type, the output that users see: the columns of a list and, together with the
// details, the lines for a single object. Empty columns and lines are omitted.

import (
	"bufio"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/corral-pilot/corral/internal/cli/progress"
)

// A column is one column of a table of Ts.
type column[T any] struct {
	name string
	cell func(T) any
}

// A listing defines how Ts are printed as text, and how a T is identified.
type listing[T any] struct {
	id      func(T) string
	columns []column[T]
	details []column[T] // shown only for a single T
	none    string      // text for an empty list, with advice

	// owner returns the owner of a T. It is used in the lists of administrators, which contain objects of several
	// owners. If nil, the owner is never shown.
	owner func(T) string
}

// list prints items as a table, or in the requested form.
func (l listing[T]) list(p *printer, items []T) error {
	if p.quiet {
		for _, it := range items {
			fmt.Fprintln(p.out, l.id(it))
		}
		return nil
	}
	return p.print(items, "", func() {
		if len(items) == 0 {
			p.say("%s", l.none)
			return
		}
		l.columns = l.withOwners(items)
		cells := make([]any, len(l.columns))
		header := make([]string, len(l.columns))
		for i, c := range l.columns {
			header[i] = strings.ToUpper(c.name)
		}
		g := newGrid(header)
		for _, it := range items {
			for i, c := range l.columns {
				cells[i] = c.cell(it)
			}
			g.add(cells)
		}
		g.write(p.out, p.lineWidth())
	})
}

// withOwners returns the columns of a list of items; if the items have several owners, the owner is the second column.
func (l listing[T]) withOwners(items []T) []column[T] {
	if l.owner == nil || !slices.ContainsFunc(items, func(it T) bool { return l.owner(it) != l.owner(items[0]) }) {
		return l.columns
	}
	return slices.Insert(slices.Clone(l.columns), 1, column[T]{"owner", func(it T) any { return l.owner(it) }})
}

// show prints one object, with one field per line, or in the requested form.
func (l listing[T]) show(p *printer, v T) error {
	return p.print(v, l.id(v), func() {
		t := newTable(nil)
		for _, c := range slices.Concat(l.columns, l.details) {
			if cell := fmt.Sprint(c.cell(v)); cell != "" {
				t.AppendRow(table.Row{c.name, cell})
			}
		}
		p.render(t)
	})
}

// showEach prints several objects as a list, or a single object by itself if it was the only one named.
func (l listing[T]) showEach(p *printer, items []T, alone bool) error {
	if alone {
		return l.show(p, items[0])
	}
	return l.list(p, items)
}

// newTable returns a table without borders, with two blanks between columns.
func newTable(header table.Row) table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	if header != nil {
		t.AppendHeader(header)
	}
	return t
}

// render writes a table.
func (p *printer) render(t table.Writer) {
	out := bufio.NewWriter(p.out)
	for line := range strings.Lines(t.Render()) {
		fmt.Fprintln(out, progress.Inert(strings.TrimRight(line, " \n")))
	}
	_ = out.Flush() // the stream stores errors of stdout
}

// lineWidth returns the width at which the lines of a list are cut: the terminal's width, because wrapped lines are
// hard to read. If the output is not a terminal, lines are not cut.
func (p *printer) lineWidth() int {
	if isTerminal(p.out) {
		return widthOf(p.out)
	}
	return math.MaxInt
}

// truncate shortens a line to a width, and marks the cut with an ellipsis.
func truncate(line string, width int) string {
	if len(line) <= width {
		return line
	}
	if r := []rune(line); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return line
}

// when formats a time for users: the time of day if it is near, otherwise the date, or nothing for the zero time.
func when(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case time.Since(t).Abs() < 12*time.Hour:
		return t.Local().Format("15:04:05")
	}
	return t.Local().Format("2006-01-02 15:04")
}

// whenExactly is like when, but with milliseconds.
func whenExactly(t time.Time) string {
	if time.Since(t).Abs() < 12*time.Hour {
		return t.Local().Format("15:04:05.000")
	}
	return t.Local().Format("2006-01-02 15:04:05.000")
}

// span formats a duration with about three digits.
func span(d time.Duration) string {
	for _, s := range []struct{ below, unit time.Duration }{
		{10 * time.Millisecond, 100 * time.Microsecond},
		{time.Second, time.Millisecond},
		{10 * time.Second, 10 * time.Millisecond},
		{time.Minute, 100 * time.Millisecond},
	} {
		if d.Abs() < s.below {
			return d.Round(s.unit).String()
		}
	}
	return short(d.Round(time.Second).String())
}

// short removes the zero units at the end of a duration: it returns 1h, not 1h0m0s.
func short(d string) string {
	if strings.HasSuffix(d, "m0s") {
		d = strings.TrimSuffix(d, "0s")
	}
	if strings.HasSuffix(d, "h0m") {
		d = strings.TrimSuffix(d, "0m")
	}
	return d
}

// size formats mebibytes.
func size(mib int) string {
	if mib < 1<<10 {
		return fmt.Sprintf("%d MiB", mib)
	}
	return fmt.Sprintf("%g GiB", math.Round(float64(mib)/(1<<10)*10)/10)
}

// labels formats labels as in flags: k=v, sorted.
func labels(m map[string]string) string {
	var out []string
	for k, v := range m {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// unless returns v, or an empty text for the zero value.
func unless[T comparable](v T) any {
	var zero T
	if v == zero {
		return ""
	}
	return v
}

// choose returns yes if a condition holds, and otherwise no.
func choose(is bool, yes, no any) any {
	if is {
		return yes
	}
	return no
}
