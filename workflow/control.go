package workflow

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// A Control is what a workflow says of when and whether a task runs, and of what its end means. Its zero value, and a
// nil Control, say nothing.
type Control struct {
	Noop     bool   // the process does nothing: Argv is `true`
	Done     bool   // it was done before: neither it nor its scripts run, and its children may start
	Final    bool   // it runs after all others, whatever became of them, and decides whether the workflow succeeded
	Priority int    // of the tasks that could start, those with the largest do
	Category string // Workflow.Categories says how many of its members run at a time; "": it is of none

	Pre     *Script // runs before the process, where the scheduler is; the task fails if it does
	PreSkip int     // with this exit status of Pre the task is done at once; 0: with none
	Post    *Script // runs after the process, and decides whether the task succeeded
	Hold    *Script // runs when a batch system holds the task

	UnlessExit int    // with this exit status the task is not tried again; 0: it is with any
	Abort      *Abort // ends the workflow
}

// A Script is a process that belongs to a task but runs where the scheduler is.
type Script struct {
	Argv        []string // $JOB, $RETURN and the like stand for what is known when it runs
	Dir         string   // where it runs, relative to the workflow's; "": there
	DeferStatus int      // with this exit status it is run again; 0: with none
	DeferAfter  time.Duration
}

// An Abort ends the workflow as soon as its task ends with an exit status.
type Abort struct {
	Exit   int
	Return *int // the workflow's own exit status; nil: the task's
}

// A Subworkflow is some of the tasks, taken as one: those of a workflow inside this one, or the processes of one job.
// Its tasks follow each other: tasks First to End-1, the tasks of its own subworkflows among them. Its name is no
// task's id, but theirs begin with it.
type Subworkflow struct {
	Name       string
	First, End int
	Retries    *int     // of it as a whole; nil: none
	Control    *Control // of it as a whole: its scripts run once, for instance; nil: nothing
}

// Schedulable returns nil if a run heeds all that the workflow says. Otherwise the error has kind Unsatisfiable and
// names the first task for which a run would do something else. What would change nothing is passed over: a priority
// that all tasks share, a limit that cannot be reached.
func (w *Workflow) Schedulable() error {
	if err := w.heedsCategories(); err != nil {
		return err
	}
	for i := range w.Tasks {
		t := &w.Tasks[i]
		err := t.Control.heeded(t.Retries)
		if err == nil && t.Control.priority() != w.Tasks[0].Control.priority() {
			err = errors.New("its priority is not that of other tasks, and a run has no priorities")
		}
		if err == nil && len(t.Names) > 0 {
			file := slices.Sorted(maps.Keys(t.Names))[0]
			err = fmt.Errorf("it knows file %q as %q, and a run gives it files under their own names only",
				file, t.Names[file])
		}
		if err != nil {
			return w.unsatisfiable(i, "task", t.ID, err)
		}
	}
	for _, s := range w.Subworkflows {
		err := s.Control.heeded(s.Retries)
		if err == nil && s.Retries != nil && *s.Retries > 0 {
			err = errors.New("it has retries as a whole, and a run tries single tasks again")
		}
		if err != nil {
			return w.unsatisfiable(s.First, "subworkflow", s.Name, err)
		}
	}
	return nil
}

func (w *Workflow) unsatisfiable(i int, what, name string, err error) error {
	return corral.ErrorAt(corral.Unsatisfiable, w.Place(i).String(), "%s %q: %w", what, name, err)
}

// heeded says what a run would not do of c; retries are those of the same task.
func (c *Control) heeded(retries *int) error {
	switch {
	case c == nil:
		return nil
	case c.Done:
		return errors.New("it is marked as done, and a run starts all tasks")
	case c.Final:
		return errors.New("it is the final task, to run even after failures, and a run skips it then")
	case c.Pre != nil || c.Post != nil || c.Hold != nil:
		return errors.New("it has a script (PRE, POST or HOLD), and a run starts none")
	case c.Abort != nil:
		return fmt.Errorf("its exit status %d is to abort the workflow, and a run goes on", c.Abort.Exit)
	case c.UnlessExit != 0 && (retries == nil || *retries > 0):
		return fmt.Errorf("it is not to be tried again after exit status %d, and a run heeds no exit status",
			c.UnlessExit)
	}
	return nil
}

func (c *Control) priority() int {
	if c == nil {
		return 0
	}
	return c.Priority
}

// heedsCategories fails if a category has more members than may run at a time.
func (w *Workflow) heedsCategories() error {
	sizes := make(map[string]int)
	heeded := func(c *Control) error {
		if c == nil || c.Category == "" {
			return nil
		}
		sizes[c.Category]++
		if most, ok := w.Categories[c.Category]; ok && sizes[c.Category] > most {
			return fmt.Errorf("of its category %q at most %d may run at a time, and a run has no such limits",
				c.Category, most)
		}
		return nil
	}
	for i := range w.Tasks {
		if err := heeded(w.Tasks[i].Control); err != nil {
			return w.unsatisfiable(i, "task", w.Tasks[i].ID, err)
		}
	}
	for _, s := range w.Subworkflows {
		if err := heeded(s.Control); err != nil {
			return w.unsatisfiable(s.First, "subworkflow", s.Name, err)
		}
	}
	return nil
}
