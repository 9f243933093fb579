package wfformat

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/corral-pilot/corral/workflow"
)

// A reader reads one document, field by field, and passes the contents to its builder. The fields of the document may
// be in any order, so executions and edges are deferred until all tasks are known.
type reader struct {
	doc           *document
	wf            *workflow.Workflow
	builder       *workflow.Builder
	maxExecutions int

	version    string
	layout     string             // the version to which the workflow's fields belong; "": not known yet
	extension  *workflowExtension // nil: none
	executions executions
	tasks      tasks14
	ofChildren []bool // for each edge, whether it is from a list of children, not from a list of parents
}

// read reads the whole document, and then joins its separate parts. It warns of unknown fields only at the end, when
// all of them have been counted.
func (r *reader) read() error {
	if err := r.doc.object(r.format())(""); err != nil {
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
	if err := r.tasks.finish(r); err != nil {
		return err
	}
	if err := r.executions.join(r.builder, r.wf); err != nil {
		return err
	}
	if err := r.extension.apply(r.wf); err != nil {
		return r.doc.here().Errorf("%w", err)
	}
	return r.compareLists()
}

// format returns the functions that read the fields of the format.
func (r *reader) format() fields {
	doc, wf := r.doc, r.wf
	return fields{
		"name":          value(doc, &wf.Name),
		"description":   value(doc, &wf.Description),
		"createdAt":     r.time(&wf.CreatedAt),
		"schemaVersion": r.schemaVersion,
		"author":        value(doc, &wf.Author),
		"runtimeSystem": value(doc, &wf.System),
		"wms":           value(doc, &wf.System), // the field's name in 1.4
		"workflow": doc.object(fields{
			"specification": r.of(version, doc.object(fields{
				"tasks":      array(doc, r.task),
				"files":      array(doc, r.file),
				extensionKey: value(doc, &r.extension),
			})),
			"execution": r.of(version, doc.object(fields{
				"makespanInSeconds": value(doc, (*seconds)(&wf.Makespan)),
				"executedAt":        r.time(&wf.ExecutedAt),
				"tasks":             array(doc, r.execution),
				"machines":          value(doc, &wf.Machines),
			})),
			"makespanInSeconds": r.of(version14, value(doc, (*seconds)(&wf.Makespan))),
			"executedAt":        r.of(version14, r.time(&wf.ExecutedAt)),
			"tasks":             r.of(version14, array(doc, r.task14)),
			"machines":          r.of(version14, r.machines14),
		}),
	}
}

// of returns a field that exists in only one version. In a document of the other version the field is unknown; in a
// document whose version is not known yet it determines the version.
func (r *reader) of(version string, read field) field {
	return func(path string) error {
		if cmp.Or(r.version, r.layout, version) != version {
			return r.doc.skip(path)
		}
		r.layout = version
		return read(path)
	}
}

// schemaVersion reads the version, and refuses an unsupported version at once, because the rest of such a file would
// not be meaningful.
func (r *reader) schemaVersion(path string) error {
	if err := value(r.doc, &r.version)(path); err != nil {
		return err
	}
	return r.checkVersion()
}

// checkVersion refuses an unsupported version. It is also called at the end, in case the version is missing.
func (r *reader) checkVersion() error {
	if r.version != version && r.version != version14 {
		return r.doc.here().Errorf("schemaVersion is %q; only WfFormat %s and %s are supported",
			r.version, version14, version)
	}
	if r.layout != "" && r.layout != r.version {
		return r.doc.here().Errorf("schemaVersion is %q, but the fields are those of %s", r.version, r.layout)
	}
	return nil
}

// task adds a task with its edges in both directions. For compareLists it records whether an edge is from a list of
// parents or of children.
func (r *reader) task(s *specTask, at workflow.Place) error {
	t := workflow.Task{ID: s.ID, Name: s.Name, Inputs: s.Inputs, Outputs: s.Outputs}
	if err := s.Corral.apply(&t); err != nil {
		return at.Errorf("task %q: %s: %w", t.ID, extensionKey, err)
	}
	if err := r.builder.Add(t, at); err != nil {
		return err
	}
	if t.ID != s.ID {
		if err := r.builder.Also(s.ID, at); err != nil {
			return err
		}
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

// file records the size of a file.
func (r *reader) file(f *dataFile, at workflow.Place) error {
	return r.builder.File(f.ID, int64(f.Size), at)
}

// execution adds an execution to its task, once the task is known. Programs and arguments are interned, because
// thousands of tasks run the same program, and most arguments are file names.
func (r *reader) execution(e *execTask, at workflow.Place) error {
	if r.executions.count == r.maxExecutions {
		return at.Errorf("the workflow has executions of more than %d tasks", r.maxExecutions)
	}
	return r.keep(*e, at)
}

// keep stores an execution, with only one copy of each text of its command.
func (r *reader) keep(e execTask, at workflow.Place) error {
	if e.Command != nil {
		e.Command.Program = r.builder.Intern(e.Command.Program)
		for i, a := range e.Command.Arguments {
			e.Command.Arguments[i] = r.builder.Intern(a)
		}
	}
	return r.executions.add(r.builder, r.wf, execution{e, at})
}

// time returns a field that reads a timestamp into t. If the format of the timestamp is not supported, t becomes zero,
// and a warning is added.
func (r *reader) time(t *time.Time) field {
	return func(path string) error {
		var s string
		at, err := read(r.doc, path, &s)
		var ok bool
		if *t, ok = parseTime(s); !ok {
			r.builder.Warn(at, "%s: %q is not a supported time format", path, s)
		}
		return err
	}
}

// compareLists warns if the lists of parents and the lists of children disagree. A WfFormat file should contain each
// edge twice; an edge in only one of the lists is also valid, so that a task never starts too early. If one kind of
// list is always empty, as in files written by hand, compareLists does not warn.
func (r *reader) compareLists() error {
	edges, err := r.builder.Edges()
	if err != nil {
		return err
	}
	ups := 0 // edges from lists of parents are moved to the front
	for k, e := range edges {
		if !r.ofChildren[k] {
			edges[k], edges[ups] = edges[ups], e
			ups++
		}
	}
	up, down := edges[:ups], edges[ups:]
	if len(up) > 0 && len(down) > 0 {
		up, down = sorted(up), sorted(down)
		r.warnOfMissing(up, down, "parents", "children")
		r.warnOfMissing(down, up, "children", "parents")
	}
	return nil
}

// sorted sorts edges in place and drops repetitions.
func sorted(edges [][2]int) [][2]int {
	slices.SortFunc(edges, byEnds)
	return slices.Compact(edges)
}

func byEnds(x, y [2]int) int { return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1])) }

// warnOfMissing warns of the first edge that is in one kind of list but not in the other. Both slices of edges must be
// sorted.
func (r *reader) warnOfMissing(edges, other [][2]int, in, lack string) {
	var only [][2]int
	for _, e := range edges {
		for len(other) > 0 && byEnds(other[0], e) < 0 {
			other = other[1:]
		}
		if len(other) == 0 || other[0] != e {
			only = append(only, e)
		}
	}
	if len(only) == 0 {
		return
	}
	parent, child := only[0][0], only[0][1]
	r.builder.Warn(r.wf.Place(min(parent, child)), "%s -> %s is in a list of %s but not in one of %s; it is used%s",
		r.wf.Tasks[parent].ID, r.wf.Tasks[child].ID, in, lack, workflow.AndMore(len(only)-1))
}
