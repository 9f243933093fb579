package workflow

import (
	"fmt"
	"time"
)

// A reader walks through one document, field by field, and gives its builder what it finds. The fields of the document
// may come in any order, so executions and edges wait until all tasks are known.
type reader struct {
	doc      *document
	wf       *Workflow
	builder  *Builder
	maxTasks int

	version    string
	executions executions
	ofChildren []bool // of each edge: whether a list of children names it, and not one of parents
}

// read reads the whole document.
func (r *reader) read() error {
	if err := r.doc.object("", r.topField); err != nil {
		return err
	}
	if err := r.doc.end(); err != nil {
		return err
	}
	for _, u := range r.doc.unknown {
		more := ""
		if u.count > 1 {
			more = fmt.Sprintf(" (%d times)", u.count)
		}
		r.builder.Warn(u.at, "unknown field %s is ignored%s", u.path, more)
	}
	if err := r.checkVersion(); err != nil {
		return err
	}
	if err := r.executions.join(r.builder, r.wf); err != nil {
		return err
	}
	return r.compareLists()
}

func (r *reader) topField(key string) error {
	switch key {
	case "name":
		return r.text(key, &r.wf.Name)
	case "description":
		return r.text(key, &r.wf.Description)
	case "createdAt":
		return r.time(key, &r.wf.CreatedAt)
	case "schemaVersion":
		if err := r.text(key, &r.version); err != nil {
			return err
		}
		return r.checkVersion()
	case "author":
		_, err := read(r.doc, key, &r.wf.Author)
		return err
	case "runtimeSystem":
		_, err := read(r.doc, key, &r.wf.System)
		return err
	case "workflow":
		return r.doc.object(key, r.workflowField)
	}
	return errUnknown
}

// checkVersion is called as soon as the version is known, because a file of another version makes no
// sense as 1.5, and at the end, in case there was none.
func (r *reader) checkVersion() error {
	if r.version != "1.5" {
		return r.doc.here().Errorf("schemaVersion is %q; only WfFormat 1.5 is read", r.version)
	}
	return nil
}

func (r *reader) workflowField(key string) error {
	switch key {
	case "specification":
		return r.doc.object("workflow.specification", r.specificationField)
	case "execution":
		return r.doc.object("workflow.execution", r.executionField)
	}
	return errUnknown
}

func (r *reader) specificationField(key string) error {
	path := "workflow.specification." + key
	switch key {
	case "tasks":
		return r.doc.array(path, func() error { return r.task(path + "[]") })
	case "files":
		r.wf.FileSizes = make(map[string]int64) // an empty list is kept, too
		return r.doc.array(path, func() error { return r.file(path + "[]") })
	}
	return errUnknown
}

func (r *reader) executionField(key string) error {
	path := "workflow.execution." + key
	switch key {
	case "makespanInSeconds":
		_, err := read(r.doc, path, (*seconds)(&r.wf.Makespan))
		return err
	case "executedAt":
		return r.time(path, &r.wf.ExecutedAt)
	case "tasks":
		return r.doc.array(path, func() error { return r.execution(path + "[]") })
	case "machines":
		_, err := read(r.doc, path, &r.wf.Machines)
		return err
	}
	return errUnknown
}

func (r *reader) task(path string) error {
	var s specTask
	at, err := read(r.doc, path, &s)
	if err != nil {
		return err
	}
	t := Task{ID: s.ID, Name: s.Name, Inputs: s.Inputs, Outputs: s.Outputs}
	if err := s.Corral.apply(&t); err != nil {
		return at.Errorf("task %q: %s: %w", t.ID, extensionKey, err)
	}
	if err := r.builder.Add(t, at); err != nil {
		return err
	}
	for _, parent := range s.Parents {
		r.builder.Edge(parent, s.ID, at)
		r.ofChildren = append(r.ofChildren, false)
	}
	for _, child := range s.Children {
		r.builder.Edge(s.ID, child, at)
		r.ofChildren = append(r.ofChildren, true)
	}
	return nil
}

func (r *reader) file(path string) error {
	var f dataFile
	at, err := read(r.doc, path, &f)
	if err != nil {
		return err
	}
	return r.builder.File(f.ID, int64(f.Size), at)
}

func (r *reader) execution(path string) error {
	var e execTask
	at, err := read(r.doc, path, &e)
	if err != nil {
		return err
	}
	if len(r.executions) == r.maxTasks {
		return at.Errorf("the workflow has executions of more than %d tasks", r.maxTasks)
	}
	if e.Command != nil {
		e.Command.Program = r.builder.Intern(e.Command.Program)
		for i, a := range e.Command.Arguments {
			e.Command.Arguments[i] = r.builder.Intern(a)
		}
	}
	r.executions = append(r.executions, execution{e, at})
	return nil
}

func (r *reader) text(path string, v *string) error {
	_, err := read(r.doc, path, v)
	return err
}

func (r *reader) time(path string, t *time.Time) error {
	var s string
	at, err := read(r.doc, path, &s)
	var ok bool
	if *t, ok = parseTime(s); !ok {
		r.builder.Warn(at, "%s: %q is not a time that is understood", path, s)
	}
	return err
}
