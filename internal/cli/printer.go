package cli

// All output has one of three forms: a table, JSON or YAML with the names of the REST API, or only ids with --quiet.
// Data is written to stdout and everything else to stderr, so scripts can rely on each form.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/progress"
)

// The forms of output.
const (
	formTable = "table"
	formJSON  = "json"
	formYAML  = "yaml"
)

var forms = []string{formTable, formJSON, formYAML}

// A printer writes the output of a command in the requested form.
type printer struct {
	stdio
	format string
	quiet  bool       // print only ids
	flags  []cli.Flag // flags of the running command
}

// configure reads the global flags; it is called before every command.
func (p *printer) configure(c *cli.Context) error {
	format := c.String("output")
	if isCommand(c.App.Commands, format) { // -o has consumed the command as its value
		return corral.ErrorAt(corral.Invalid, "--output", "wants table, json or yaml before the command %q", format)
	}
	if !slices.Contains(forms, format) {
		return corral.ErrorAt(corral.Invalid, "--output", "%q is none of %s", format, strings.Join(forms, ", "))
	}
	p.format, p.quiet = format, c.Bool("quiet")
	return nil
}

// isCommand reports whether a word names one of the commands or their subcommands.
func isCommand(commands []*cli.Command, word string) bool {
	return slices.ContainsFunc(commands, func(c *cli.Command) bool {
		return c.HasName(word) || isCommand(c.Subcommands, word)
	})
}

// forPeople reports whether output is for people, with tables and text around them.
func (p *printer) forPeople() bool { return p.format == formTable && !p.quiet }

// say writes a line to stderr, unless --quiet is given.
func (p *printer) say(format string, args ...any) {
	if !p.quiet {
		fmt.Fprintln(p.err, readable(fmt.Sprintf(format, args...)))
	}
}

// print writes v in the requested form; people writes v as text, and id is printed with --quiet.
func (p *printer) print(v any, id string, people func()) error {
	switch {
	case p.quiet:
		_, err := fmt.Fprintln(p.out, id)
		return err
	case p.format != formTable:
		return p.encode(v)
	}
	people()
	return nil
}

// encode writes v as JSON or YAML, both with the names of the REST type.
func (p *printer) encode(v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	if p.format == formYAML {
		if b, err = yaml.JSONToYAML(b); err != nil {
			return fmt.Errorf("encoding the answer: %w", err)
		}
	}
	_, err = fmt.Fprintln(p.out, strings.TrimRight(string(b), "\n"))
	return err
}

// An objectError is an error that concerns an object that the command created or found; with -o json the problem's
// instance is the object's path.
type objectError struct {
	instance string // the object's path in the REST API
	err      error
}

func (a objectError) Error() string { return a.err.Error() }
func (a objectError) Unwrap() error { return a.err }

// A printedError is an error that is already visible on stdout.
type printedError struct{ error }

func (s printedError) Unwrap() error { return s.error }

// problem reports an error as a sentence on stderr and, with -o json or yaml, also as a problem object on stdout, where
// scripts expect the answer. The details of an internal error of corrald are only in corrald's log; the details of an
// error of this program are shown, because the reader is this program's own user.
func (p *printer) problem(err error) {
	fmt.Fprintln(p.err, "corral: "+readable(withFlag(err, p.flags)))
	var already printedError
	if p.format == formTable || p.format == "" || errors.As(err, &already) {
		return
	}
	problem := *api.ProblemOf(err)
	var own *corral.Error
	if !errors.As(err, &own) { // an error of this program, whose details may be shown
		problem.Detail = err.Error()
	}
	if of, ok := errors.AsType[objectError](err); ok {
		problem.Instance = of.instance
	}
	_ = p.encode(problem) // the same text is on stderr
}

// maxSentence is the maximum length of a sentence in characters.
const maxSentence = 4000

// readable returns a sentence without control characters, cut at maxSentence.
func readable(sentence string) string {
	return truncate(progress.Inert(strings.ReplaceAll(sentence, "\r\n", "\n")), maxSentence)
}

// A stream stores the first error of writing to it.
type stream struct {
	io.Writer
	mu  sync.Mutex // guards err
	err error      // the first error
}

func (o *stream) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = cmp.Or(o.err, err)
	return n, err
}

// lost returns an error if some output was not written.
func (o *stream) lost() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return nil
	}
	return corral.ErrorAt(corral.Failed, "stdout", "%w; the output is incomplete", o.err)
}

// withFlag returns the text of an error for users: it replaces the name of a request's field with the flag that sets
// the field. If the field has several values, their position is kept.
func withFlag(err error, flags []cli.Flag) string {
	text := err.Error()
	place, rest, ok := strings.Cut(text, ": ")
	if !ok {
		return text
	}
	field, _, _ := strings.Cut(place, ".") // labels.colour belongs to the flag for labels,
	field, _, _ = strings.Cut(field, "[")  // and site_options[1] to the flag for site_options
	name, special := flagOf[field]
	if !special {
		name, _ = strings.CutSuffix(strings.TrimSuffix(field, "_s"), "_at") // the name without its unit
		name = strings.ReplaceAll(name, "_", "-")
	}
	if lookup(flags, name) == nil {
		e, placed := errors.AsType[*corral.Error](err)
		if placed && e.Place == place && slices.Contains([]string{"id", "task", "tasks"}, place) {
			return rest // the place is part of the path, which the sentence names
		}
		return text
	}
	if place != field {
		return place + " (--" + name + "): " + rest
	}
	return "--" + name + ": " + rest
}

// flagOf maps fields to the flags whose names cannot be derived from them.
var flagOf = map[string]string{"memory_mib": "memory", "site_options": "site-opt", "labels": "label",
	"profiles": "profile", "host_cpus": "shape", "run_id": "run", "min_cpus": "min", "max_cpus": "max",
	"max_peak_cpus": "max-cpus", "pilot_cpus": "cpus", "pilot_walltime_s": "walltime"}

// terminalOf returns the terminal to which w writes, or nil.
func terminalOf(w io.Writer) *os.File {
	if o, ok := w.(*stream); ok {
		w = o.Writer
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool { return terminalOf(w) != nil }

// widthOf returns the number of characters on a line of w, which is a terminal.
func widthOf(w io.Writer) int {
	width, _, err := term.GetSize(int(terminalOf(w).Fd()))
	if err != nil || width <= 0 {
		return helpWidth
	}
	return width
}

// lookOf returns a description of what may be drawn on w.
func lookOf(w io.Writer) progress.Look {
	if !isTerminal(w) || os.Getenv("TERM") == "dumb" {
		return progress.Look{}
	}
	return progress.Look{Width: func() int { return widthOf(w) }, Colour: os.Getenv("NO_COLOR") == ""}
}
