package workflow

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// A Control determines whether and when a task runs, and the consequences of its end. The zero value and a nil Control
// have no effect.
type Control struct {
	Noop     bool   // the process does nothing: Argv is `true`
	Done     bool   // the task was done before: neither it nor its scripts run, and its children may start
	Final    bool   // runs after all others, whatever their results, and decides whether the workflow succeeded
	Priority int    // tasks with a higher priority start earlier, if several tasks could start
	Label    string // see Task.Label
	Category string // Workflow.Categories limits how many tasks of a category run at a time; "": none

	Pre     *Script // runs before the process, on the scheduler's host; the task fails if the script fails
	PreSkip int     // with this exit status of Pre the task is done at once; 0: disabled
	Post    *Script // runs after the process, and decides whether the task succeeded
	Hold    *Script // runs if a batch system holds the task

	UnlessExit int    // with this exit status the task is not retried; 0: disabled
	Abort      *Abort // ends the workflow
}

// A Script is a process that belongs to a task but runs on the scheduler's host.
type Script struct {
	Argv        []string // $JOB, $RETURN and other variables are replaced when the script runs
	Dir         string   // working directory relative to the workflow's; "": the workflow's
	DeferStatus int      // with this exit status the script is run again; 0: disabled
	DeferAfter  time.Duration
}

// An Abort ends the workflow as soon as its task ends with a given exit status.
type Abort struct {
	Exit   int
	Return *int // the workflow's own exit status; nil: the task's
}

// A Subworkflow is a group of tasks: the tasks of a nested workflow, or the processes of one job. Its tasks are
// consecutive, from First to End-1, including the tasks of its own subworkflows. Its name is not the id of a task, but
// the ids of its tasks begin with it.
type Subworkflow struct {
	Name       string
	First, End int
	Job        bool     // a group of the processes of one job, which fails with the status of the first that fails
	Retries    *int     // retries of the group as a whole; each repeats the tasks that are not done; nil: none
	Control    *Control // control of the group as a whole: its scripts, for example, run once; nil: none
}

// Schedulable returns nil if a run can execute the whole workflow as specified. Otherwise the error has kind
// Unsatisfiable and names the first task that a run could not execute as specified. HOLD scripts are ignored, because
// the tasks of a run are never held.
func (w *Workflow) Schedulable() error {
	for i := range w.Tasks {
		t := &w.Tasks[i]
		err := w.heeded(t.Control)
		if err == nil && len(t.Names) > 0 {
			file := slices.Sorted(maps.Keys(t.Names))[0]
			err = fmt.Errorf("it uses file %q under the name %q, but a run provides files only under their own names",
				file, t.Names[file])
		}
		if err == nil && t.Control != nil && t.Control.Final && len(w.Graph.Children(i)) > 0 {
			err = errors.New("it is a final task, which runs after all others, but has children")
		}
		if err != nil {
			return w.unsatisfiable(i, "task", t.ID, err)
		}
	}
	for _, s := range w.Subworkflows {
		if err := w.heeded(s.Control); err != nil {
			return w.unsatisfiable(s.First, "subworkflow", s.Name, err)
		}
	}
	return nil
}

func (w *Workflow) unsatisfiable(i int, what, name string, err error) error {
	return corral.ErrorAt(corral.Unsatisfiable, w.Place(i).String(), "%s %q: %w", what, name, err)
}

// heeded returns an error if a run could not do what c specifies.
func (w *Workflow) heeded(c *Control) error {
	if c == nil {
		return nil
	}
	if most, limited := w.Categories[c.Category]; limited && most == 0 && c.Category != "" {
		return fmt.Errorf("its category %q has a limit of 0: set a limit of at least 1", c.Category)
	}
	for kind, s := range map[string]*Script{"PRE": c.Pre, "POST": c.Post} {
		if s == nil {
			continue
		}
		if len(s.Argv) == 0 || s.Argv[0] == "" {
			return fmt.Errorf("its %s script has no name", kind)
		}
		if s.Dir != "" && !filepath.IsLocal(s.Dir) {
			return fmt.Errorf("its %s script runs in %q, which is outside the run's directory", kind, s.Dir)
		}
	}
	return nil
}

// Scripts reports whether the workflow has scripts that a run would start.
func (w *Workflow) Scripts() bool {
	for i := range w.Tasks {
		if w.Tasks[i].Control.scripts() {
			return true
		}
	}
	return slices.ContainsFunc(w.Subworkflows, func(s Subworkflow) bool { return s.Control.scripts() })
}

func (c *Control) scripts() bool { return c != nil && (c.Pre != nil || c.Post != nil) }

// ScriptFiles returns the paths inside the workflow's directory to which the scripts' commands may refer, without
// duplicates.
func (w *Workflow) ScriptFiles() []string {
	names := make(map[string]bool)
	add := func(c *Control) {
		if !c.scripts() {
			return
		}
		for _, s := range []*Script{c.Pre, c.Post} {
			for k := 0; s != nil && k < len(s.Argv); k++ {
				name := filepath.Join(s.Dir, s.Argv[k])
				names[name] = !filepath.IsAbs(s.Argv[k]) && filepath.IsLocal(name) && name != "."
			}
		}
	}
	for i := range w.Tasks {
		add(w.Tasks[i].Control)
	}
	for _, s := range w.Subworkflows {
		add(s.Control)
	}
	maps.DeleteFunc(names, func(_ string, usable bool) bool { return !usable })
	return slices.Sorted(maps.Keys(names))
}

// MadeByScripts returns the workflow's own inputs that may be missing before it runs because a script may create them:
// a task that reads the file has a PRE script, or comes after a task with a script. For any other file the map contains
// no entry, or false.
func (w *Workflow) MadeByScripts() map[string]bool {
	made := make(map[string]bool)
	if !w.Scripts() {
		return made
	}
	pre, post := make([]bool, len(w.Tasks)), make([]bool, len(w.Tasks))
	note := func(c *Control, first, end int) {
		for i := first; c != nil && i < end; i++ {
			pre[i], post[i] = pre[i] || c.Pre != nil, post[i] || c.Post != nil
		}
	}
	for i := range w.Tasks {
		note(w.Tasks[i].Control, i, i+1)
	}
	for _, s := range w.Subworkflows {
		note(s.Control, s.First, s.End)
	}
	for _, i := range w.Graph.Order() {
		for _, p := range w.Graph.Parents(i) {
			pre[i] = pre[i] || pre[p] || post[p]
		}
		for _, f := range w.Tasks[i].Inputs {
			made[f] = made[f] || pre[i]
		}
	}
	return made
}
