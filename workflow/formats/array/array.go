// Package array makes a workflow of one command that nobody wrote a file for: a single task, or a task array, whose
// tasks differ in their number and in the line of a file that each of them gets (its entry).
//
// A task learns who it is from its environment: CORRAL_TASK is its number, as every run has it, and CORRAL_ENTRY its
// line. Nothing is replaced in the command itself, so what it means does not depend on what an entry contains.
//
// A command runs in one of two places. Where people expect it, in the folder that it was submitted from, a shell on
// the worker changes there first: the worker must see that folder, and nothing travels. Or in a directory of its own,
// as the tasks of all other workflows do: then its files are named, go to any worker, and come back.
//
// The package does no I/O. It only builds what workflow.Builder checks.
package array

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
)

// A Command is what each task of an array runs. Every text that is wrong is an Invalid error, which names the place in
// words of the command line.
type Command struct {
	Name string // of the workflow and of its transformation; "": as the program
	Argv []string
	Env  map[string]string

	// Dir is where the tasks run, an absolute folder that the workers see; "": each in a directory of its own. It and
	// the names of files may contain %{TASK}, the number of the task; names of streams of tasks that run in Dir also
	// %{RUN}, the number of the run.
	Dir     string
	From    string // the folder that the command was submitted from: CORRAL_SUBMIT_DIR
	Inputs  []string
	Outputs []string
	workflow.Streams

	corral.Resources
	Time time.Duration // that a task may take, and that its worker must have left; 0: as the run assumes, no limit
}

// An Element is one task of the array.
type Element struct {
	Number int
	Entry  *string // nil: it has none
}

// Workflow makes the workflow: a task for each element, called by its number, in their order.
func (c Command) Workflow(elements []Element) (*workflow.Workflow, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	program := workflow.NameOf(c.Argv[0])
	wf := &workflow.Workflow{Name: cmp.Or(c.Name, program), Dir: c.From}
	b := workflow.NewBuilder(wf, workflow.Options{})
	b.Grow(len(elements))
	shared := c.task(0) // what tasks have in common, which takes its memory once
	for _, e := range elements {
		t := shared
		if c.varies() {
			t = c.task(e.Number)
		}
		t.ID, t.Name = strconv.Itoa(e.Number), wf.Name
		if e.Entry != nil {
			t.Env = maps.Clone(t.Env)
			t.Env[corral.EntryVariable] = *e.Entry
		}
		if err := b.Add(t, workflow.Place{}); err != nil {
			return nil, err
		}
	}
	end := workflow.Place{File: wf.Name}
	if err := b.Build(end); err != nil {
		return nil, err
	}
	return wf, wf.Runnable()
}

// check refuses what the workflow could not hold, or what would mean something else in the place where tasks run.
func (c Command) check() error {
	texts := map[string][]string{"command": c.Argv, "--name": {c.Name}, "--cwd": {c.Dir}, "--in": c.Inputs,
		"--out": c.Outputs, "--stdin": {c.Stdin}, "--stdout": {c.Stdout}, "--stderr": {c.Stderr}}
	for key, value := range c.Env {
		texts["--env"] = append(texts["--env"], key, value)
	}
	for _, place := range slices.Sorted(maps.Keys(texts)) {
		for _, text := range texts[place] {
			if !utf8.ValidString(text) {
				return corral.ErrorAt(corral.Invalid, place, "%q is not UTF-8, as all texts of a workflow are", text)
			}
		}
	}
	switch {
	case len(c.Argv) == 0 || c.Argv[0] == "":
		return corral.ErrorAt(corral.Invalid, "command", "missing: it follows --")
	case c.Dir != "" && len(c.Inputs)+len(c.Outputs) > 0:
		return corral.ErrorAt(corral.Invalid, "--cwd",
			"tasks with --in or --out run in a directory of their own; leave out one or the other")
	case c.Dir != "" && !path.IsAbs(c.Dir):
		return corral.ErrorAt(corral.Invalid, "--cwd", "%q is not an absolute path", c.Dir)
	}
	for _, place := range []string{"--cwd", "--in", "--out", "--stdin", "--stdout", "--stderr"} {
		for _, pattern := range texts[place] {
			if err := checkPattern(place, pattern, c.Dir != "" && strings.HasPrefix(place, "--std")); err != nil {
				return err
			}
		}
	}
	return nil
}

// varies reports whether tasks differ in more than their number and their entry.
func (c Command) varies() bool {
	return slices.ContainsFunc(slices.Concat([]string{c.Dir, c.Stdin, c.Stdout, c.Stderr}, c.Inputs, c.Outputs), ofTask)
}

// task is the task with a number, but for its id and its entry.
func (c Command) task(number int) workflow.Task {
	t := workflow.Task{Argv: c.Argv, Resources: c.Resources, Estimate: c.Time, Timeout: c.Time}
	t.CPUs = max(t.CPUs, 1)
	t.Env = maps.Clone(c.Env)
	if t.Env == nil {
		t.Env = map[string]string{}
	}
	t.Env[corral.SubmitDirVariable] = c.From
	if c.Dir != "" {
		t.Argv = slices.Concat([]string{"/bin/sh", "-c", c.script(number), c.Argv[0]}, c.Argv)
		return t
	}
	t.Stdin, t.Stdout, t.Stderr = withTask(c.Stdin, number), withTask(c.Stdout, number), withTask(c.Stderr, number)
	for _, file := range c.Inputs {
		t.Inputs = append(t.Inputs, withTask(file, number))
	}
	for _, file := range c.Outputs {
		t.Outputs = append(t.Outputs, withTask(file, number))
	}
	if t.Stdin != "" && !slices.Contains(t.Inputs, t.Stdin) {
		t.Inputs = append(t.Inputs, t.Stdin)
	}
	for _, stream := range []string{t.Stdout, t.Stderr} {
		if stream != "" && !slices.Contains(t.Outputs, stream) {
			t.Outputs = append(t.Outputs, stream)
		}
	}
	return t
}

// Numbers are elements without entries.
func Numbers(numbers []int) []Element {
	elements := make([]Element, len(numbers))
	for i, n := range numbers {
		elements[i].Number = n
	}
	return elements
}

// Lines are elements whose entries are the lines of a file, called name in errors. They are numbered from 1, as tools
// for text number them; numbers (nil: all) chooses among them.
func Lines(name, text string, numbers []int) ([]Element, error) {
	lines, err := lines(name, text)
	if err != nil {
		return nil, err
	}
	if numbers == nil {
		for i := range lines {
			numbers = append(numbers, i+1)
		}
	}
	elements := make([]Element, len(numbers))
	for i, n := range numbers {
		if n < 1 || n > len(lines) {
			return nil, corral.ErrorAt(corral.Invalid, "--array", "there is no line %d: %s has %d", n, name, len(lines))
		}
		elements[i] = Element{n, &lines[n-1]}
	}
	return elements, nil
}

// place is a line of a file, for errors.
func place(name string, line int) string { return fmt.Sprintf("%s:%d", name, line) }
