// Package array creates a workflow from a single command, without a workflow file: one task, or a task array, whose
// tasks differ in their number and in their entry, i.e. the line of a file that each task gets.
//
// Command.Workflow returns the workflow of a Command and its elements, which Numbers or Lines creates. A task finds its
// values in its environment: CORRAL_TASK contains its number, as in every run, and CORRAL_ENTRY contains its entry. The
// command itself is not modified, so its meaning does not depend on the contents of an entry.
//
// A command runs in one of two places. It may run in the folder from which it was submitted, as users expect: a shell
// on the worker first changes to that folder, which must be visible to the worker, and no files are transferred. Or the
// command runs in a directory of its own, like the tasks of other workflows: then its files must be declared, so that
// its inputs can be transferred to any worker, and its outputs back.
//
// The package does no I/O. It only builds the input of workflow.Builder.
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

// A Command is the command that each task of an array runs. Invalid values lead to errors of kind Invalid whose place
// is the name of a command-line flag.
type Command struct {
	Name string // name of the workflow and its transformation; "": the program's name
	Argv []string
	Env  map[string]string

	// Dir is the absolute path of the folder in which the tasks run, which must be visible to the workers; "": each
	// task runs in a directory of its own. Dir and the names of files may contain %{TASK}, which stands for the number
	// of the task; for tasks that run in Dir, the names of streams may also contain %{RUN}, which stands for the number
	// of the run.
	Dir     string
	From    string // value of CORRAL_SUBMIT_DIR: the folder from which the command was submitted
	Inputs  []string
	Outputs []string
	workflow.Streams

	corral.Resources
	// Time is the maximum runtime of a task, which its worker must have left; 0: the run's default, no limit.
	Time time.Duration
}

// An Element is one task of the array.
type Element struct {
	Number int
	Entry  *string // nil: none
}

// Workflow returns the workflow, which contains a task for each element, in order. The id of a task is its number.
func (c Command) Workflow(elements []Element) (*workflow.Workflow, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	program := workflow.NameOf(c.Argv[0])
	wf := &workflow.Workflow{Name: cmp.Or(c.Name, program), Dir: c.From}
	b := workflow.NewBuilder(wf, workflow.Options{})
	b.Grow(len(elements))
	shared := c.task(0) // shared by the tasks, to save memory
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

// check refuses values that a workflow cannot represent, or that would have a different meaning in the folder in which
// the tasks run.
func (c Command) check() error {
	texts := map[string][]string{"command": c.Argv, "--name": {c.Name}, "--cwd": {c.Dir}, "--in": c.Inputs,
		"--out": c.Outputs, "--stdin": {c.Stdin}, "--stdout": {c.Stdout}, "--stderr": {c.Stderr}}
	for key, value := range c.Env {
		texts["--env"] = append(texts["--env"], key, value)
	}
	for _, place := range slices.Sorted(maps.Keys(texts)) {
		for _, text := range texts[place] {
			if !utf8.ValidString(text) {
				return corral.ErrorAt(corral.Invalid, place, "%q is not UTF-8, which is required for all texts of a "+
					"workflow", text)
			}
		}
	}
	switch {
	case len(c.Argv) == 0 || c.Argv[0] == "":
		return corral.ErrorAt(corral.Invalid, "command", "missing: it must follow --")
	case c.Dir != "" && len(c.Inputs)+len(c.Outputs) > 0:
		return corral.ErrorAt(corral.Invalid, "--cwd",
			"tasks with --in or --out run in a directory of their own; omit one or the other")
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

// varies reports whether tasks differ in other respects than their number and their entry.
func (c Command) varies() bool {
	return slices.ContainsFunc(slices.Concat([]string{c.Dir, c.Stdin, c.Stdout, c.Stderr}, c.Inputs, c.Outputs), ofTask)
}

// task returns the task with the given number, without its id and its entry.
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

// Numbers returns elements without entries.
func Numbers(numbers []int) []Element {
	elements := make([]Element, len(numbers))
	for i, n := range numbers {
		elements[i].Number = n
	}
	return elements
}

// Lines returns elements whose entries are the lines of a text; name is the name of the file for errors. Lines are
// numbered from 1, as in text tools; numbers selects lines (nil: all).
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

// place returns the place of a line of a file for errors.
func place(name string, line int) string { return fmt.Sprintf("%s:%d", name, line) }
