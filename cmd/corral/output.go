package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
)

// A printer writes what a command has to say in the form that was asked for.
type printer struct {
	stdio
	format string // table, json, yaml
	quiet  bool   // bare ids instead
}

func (p *printer) configure(c *cli.Context) error {
	p.format, p.quiet = c.String("output"), c.Bool("quiet")
	if !slices.Contains([]string{"table", "json", "yaml"}, p.format) {
		format := p.format
		p.format = "table"
		return corral.ErrorAt(corral.Invalid, "--output", "%q is none of table, json, yaml", format)
	}
	return nil
}

// say writes one line for people.
func (p *printer) say(format string, args ...any) {
	if !p.quiet {
		fmt.Fprintf(p.err, format+"\n", args...)
	}
}

// A column is one column of a table of Ts.
type column[T any] struct {
	name string
	cell func(T) any
}

// list prints items as a table, or as asked.
func list[T any](p *printer, items []T, id func(T) string, columns []column[T]) error {
	switch {
	case p.quiet:
		for _, it := range items {
			fmt.Fprintln(p.out, id(it))
		}
		return nil
	case p.format != "table":
		return p.encode(items)
	}
	header := table.Row{}
	for _, c := range columns {
		header = append(header, strings.ToUpper(c.name))
	}
	t := newTable(p, header)
	for _, it := range items {
		row := table.Row{}
		for _, c := range columns {
			row = append(row, c.cell(it))
		}
		t.AppendRow(row)
	}
	t.Render()
	return nil
}

// show prints one object: its id, or its fields one per line, or as asked.
func show[T any](p *printer, v T, id func(T) string, columns []column[T]) error {
	switch {
	case p.quiet:
		fmt.Fprintln(p.out, id(v))
		return nil
	case p.format != "table":
		return p.encode(v)
	}
	t := newTable(p, nil)
	for _, c := range columns {
		if cell := fmt.Sprint(c.cell(v)); cell != "" {
			t.AppendRow(table.Row{c.name, cell})
		}
	}
	t.Render()
	return nil
}

func newTable(p *printer, header table.Row) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(p.out)
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	if header != nil {
		t.AppendHeader(header)
	}
	t.SuppressTrailingSpaces()
	return t
}

// encode prints v as JSON or YAML; both have the names of the REST type.
func (p *printer) encode(v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	if p.format == "yaml" {
		if b, err = yaml.JSONToYAML(b); err != nil {
			return fmt.Errorf("encoding the answer: %w", err)
		}
	}
	_, err = fmt.Fprintln(p.out, strings.TrimRight(string(b), "\n"))
	return err
}

// problem says what went wrong: on stderr for people, with -o json or yaml also as a problem object on
// stdout.
func (p *printer) problem(err error) {
	var own *corral.Error
	problem := api.ProblemOf(err)
	if !errors.As(err, &own) { // an error of this program, not of corrald's: it may be shown
		problem.Detail = err.Error()
	}
	fmt.Fprintln(p.err, "corral: "+err.Error())
	if p.format == "json" || p.format == "yaml" {
		_ = p.encode(problem) // the same words are on stderr
	}
}

// when prints a time for people: the clock today, the date else, nothing for the zero time.
func when(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case time.Since(t).Abs() < 12*time.Hour:
		return t.Local().Format("15:04:05")
	}
	return t.Local().Format(time.DateTime)
}

// span prints a duration for people.
func span(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
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
