package cli

// A listing says once, for each type, what people see of it: the columns of a list, and with its details the lines of a
// single object. Empty columns and lines are left out.

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

// A listing says how Ts are printed for people, and what a T is called.
type listing[T any] struct {
	id      func(T) string
	columns []column[T]
	details []column[T] // printedError of a single T only
	none    string      // what to say of an empty list, and what to do about it

	// owner is whose a T is, for lists of an administrator, in which there are several people's; nil: never said.
	owner func(T) string
}

// list prints items as a table, or as asked.
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
		g.write(p, p.lineWidth())
	})
}

// withOwners returns the columns of a list of items: with their owners, if there are several, behind the first one.
func (l listing[T]) withOwners(items []T) []column[T] {
	if l.owner == nil || !slices.ContainsFunc(items, func(it T) bool { return l.owner(it) != l.owner(items[0]) }) {
		return l.columns
	}
	return slices.Insert(slices.Clone(l.columns), 1, column[T]{"owner", func(it T) any { return l.owner(it) }})
}

// show prints one object: its fields one per line, or as asked.
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

// showEach prints several objects: one that was named alone as itself, others as a list.
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
	_ = out.Flush() // what is wrong with stdout, the printer remembers
}

// lineWidth is where lines of a list are cut: at the terminal's edge, since a list of wrapped lines is hard to read;
// whoever reads from a pipe gets all.
func (p *printer) lineWidth() int {
	if isTerminal(p.out) {
		return widthOf(p.out)
	}
	return math.MaxInt
}

// truncate shortens a line to a width, and shows that it did.
func truncate(line string, width int) string {
	if len(line) <= width {
		return line
	}
	if r := []rune(line); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return line
}

// when prints a time for people: the clock today, the date else, nothing for the zero time.
func when(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case time.Since(t).Abs() < 12*time.Hour:
		return t.Local().Format("15:04:05")
	}
	return t.Local().Format("2006-01-02 15:04")
}

// whenExactly is when, to the millisecond.
func whenExactly(t time.Time) string {
	if time.Since(t).Abs() < 12*time.Hour {
		return t.Local().Format("15:04:05.000")
	}
	return t.Local().Format("2006-01-02 15:04:05.000")
}

// span prints a duration for people, to three digits or so.
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

// short leaves out what a duration has none of at its end: 1h, not 1h0m0s.
func short(d string) string {
	if strings.HasSuffix(d, "m0s") {
		d = strings.TrimSuffix(d, "0s")
	}
	if strings.HasSuffix(d, "h0m") {
		d = strings.TrimSuffix(d, "0m")
	}
	return d
}

// size prints mebibytes for people.
func size(mib int) string {
	if mib < 1<<10 {
		return fmt.Sprintf("%d MiB", mib)
	}
	return fmt.Sprintf("%g GiB", math.Round(float64(mib)/(1<<10)*10)/10)
}

// labels prints labels as they are given: k=v, sorted.
func labels(m map[string]string) string {
	var out []string
	for k, v := range m {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// unless prints v, or nothing if it is the zero value.
func unless[T comparable](v T) any {
	var zero T
	if v == zero {
		return ""
	}
	return v
}
