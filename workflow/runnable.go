package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// MaxCPUs is the maximum number of cpus of a task; the other needs have limits as well. They are far above the size of
// any machine: a task that exceeds them is not large, but was specified in the wrong units.
const (
	MaxCPUs      = 1 << 16
	maxMemoryMiB = 1 << 30 // 1 PiB
	maxDiskMiB   = 1 << 30 // likewise
	maxGPUs      = 1 << 10 // per host
	maxRetries   = 1 << 16
	maxIDBytes   = 200 // a directory is named ID.ATTEMPT, and names have at most 255 bytes
)

// recordFile is the name of the file that a worker writes to a task's directory; no file of the task may have this
// name.
const recordFile = "record.json"

// Runnable returns nil if the workflow can be run, as far as this can be determined without a worker. Every task needs
// a command, an id that is valid as a directory name, reasonable needs, and files that are inside the run's data
// directory and do not conflict with each other. The error has kind Invalid and names the first offending task.
//
// The checks follow from how a run works, not from a format: a task's directory is named after the task's id; inputs
// are linked into that directory before the task starts, and outputs are moved out of it when the task has succeeded,
// each under its file id. A failed task is retried with the same inputs; therefore the task gets copies of inputs that
// are also its outputs.
func (w *Workflow) Runnable() error {
	for i := range w.Tasks {
		t := &w.Tasks[i]
		err := cmp.Or(t.checkID(), t.checkCommand(), t.checkNeeds(), t.checkFiles(), t.checkStreams())
		if err != nil {
			return w.taskError(i, err)
		}
	}
	return cmp.Or(w.checkWriters(), w.checkNesting(), w.checkOrder())
}

func (w *Workflow) taskError(i int, err error) error {
	return w.Place(i).Errorf("task %q: %w", w.Tasks[i].ID, err)
}

func (t *Task) checkID() error {
	switch {
	case len(t.ID) > maxIDBytes:
		return fmt.Errorf("its id has %d bytes, but as a directory name it may have at most %d", len(t.ID), maxIDBytes)
	case slices.Contains([]string{"", ".", ".."}, t.ID), strings.Contains(t.ID, "/"),
		strings.ContainsFunc(t.ID, unicode.IsControl):
		return errors.New("its id cannot name a directory")
	}
	return nil
}

func (t *Task) checkCommand() error {
	if len(t.Argv) == 0 || t.Argv[0] == "" {
		return errors.New("it has no command (in WfFormat: command.program of its execution task; in DAX: an argument)")
	}
	for _, arg := range t.Argv {
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("argument %q contains a zero byte", arg)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.Env)) {
		if key == "" || strings.ContainsAny(key, "=\x00") || strings.ContainsRune(t.Env[key], 0) {
			return fmt.Errorf("environment variable %q cannot be set", key)
		}
	}
	return nil
}

func (t *Task) checkNeeds() error {
	switch {
	case t.CPUs < 1 || t.CPUs > MaxCPUs:
		return fmt.Errorf("%d cpus, want 1 to %d", t.CPUs, MaxCPUs)
	case t.MemoryMiB < 0 || t.MemoryMiB > maxMemoryMiB:
		return fmt.Errorf("%d MiB of memory, want at most %d", t.MemoryMiB, maxMemoryMiB)
	case t.GPUs < 0 || t.GPUs > maxGPUs:
		return fmt.Errorf("%d gpus, want at most %d", t.GPUs, maxGPUs)
	case t.DiskMiB < 0 || t.DiskMiB > maxDiskMiB:
		return fmt.Errorf("%d MiB of disk, want at most %d", t.DiskMiB, maxDiskMiB)
	case t.Retries != nil && (*t.Retries < 0 || *t.Retries > maxRetries):
		return fmt.Errorf("%d retries, want 0 to %d", *t.Retries, maxRetries)
	case t.Timeout < 0 || t.Estimate < 0:
		return errors.New("its timeout or estimate is negative")
	}
	return nil
}

func (t *Task) checkFiles() error {
	for _, f := range slices.Concat(t.Inputs, t.Outputs) {
		if err := checkPath(f); err != nil {
			return err
		}
	}
	for _, f := range slices.Sorted(maps.Keys(t.Names)) {
		if err := checkPath(t.Names[f]); err != nil {
			return err
		}
	}
	return nil
}

func (t *Task) checkStreams() error {
	for _, f := range []string{t.Stdin, t.Stdout, t.Stderr} {
		if f == "" {
			continue
		}
		if err := checkPath(f); err != nil {
			return err
		}
	}
	if t.Stdin != "" && !slices.Contains(t.Inputs, t.Stdin) {
		return fmt.Errorf("its stdin %q is not among its input files", t.Stdin)
	}
	for _, f := range []string{cmp.Or(t.Stdout, "stdout"), cmp.Or(t.Stderr, "stderr")} {
		if slices.Contains(t.Inputs, f) {
			return fmt.Errorf("its output stream would overwrite its input file %q", f)
		}
	}
	return nil
}

// checkPath refuses a file id that is not the canonical path of a file inside the directory to which it is relative.
func checkPath(f string) error {
	switch {
	case !filepath.IsLocal(f) || strings.ContainsRune(f, 0):
		return fmt.Errorf("file %q is outside the run's directory", f)
	case f == ".":
		return fmt.Errorf("file %q is the run's directory itself", f)
	case path.Clean(f) != f:
		return fmt.Errorf("file %q must be written in its shortest form, %q", f, path.Clean(f))
	case f == recordFile:
		return fmt.Errorf("file %q has the name of the record that a worker writes", f)
	}
	return nil
}

// checkWriters refuses a file that two tasks write, because one would replace the contents meant for the other's
// readers.
func (w *Workflow) checkWriters() error {
	writers := make(map[string]int)
	for i := range w.Tasks {
		for _, f := range w.Tasks[i].Outputs {
			if other, ok := writers[f]; ok {
				return w.taskError(i, fmt.Errorf("file %q is also written by task %q", f, w.Tasks[other].ID))
			}
			writers[f] = i
		}
	}
	return nil
}

// checkOrder refuses a task that reads a file that another task writes later.
func (w *Workflow) checkOrder() error {
	if w.against == nil {
		return nil
	}
	return w.Place(w.against.reader).Errorf("task %q %w, task %q", w.Tasks[w.against.reader].ID, w.against,
		w.Tasks[w.against.writer].ID)
}

// files yields the files that a task reads and writes.
func (t *Task) files() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, list := range [...][]string{t.Inputs, t.Outputs} {
			for _, f := range list {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// checkNesting refuses a file whose name is needed as a directory for another file. It has to check the whole workflow,
// because the two files may belong to different tasks. It stores only the directories, because there are far fewer of
// them than files.
func (w *Workflow) checkNesting() error {
	dirs := make(map[string]string) // :: directory → a file below it
	for i := range w.Tasks {
		for f := range w.Tasks[i].files() {
			for dir := path.Dir(f); dir != "." && dirs[dir] == ""; dir = path.Dir(dir) {
				dirs[dir] = f
			}
		}
	}
	if len(dirs) == 0 {
		return nil
	}
	for i := range w.Tasks {
		for f := range w.Tasks[i].files() {
			if below, ok := dirs[f]; ok {
				return w.taskError(i, fmt.Errorf("file %q is below %q, which is also a file", below, f))
			}
		}
	}
	return nil
}
