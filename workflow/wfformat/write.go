package wfformat

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
)

// Write writes a workflow in WfFormat 1.5, one task or file a line, so that a line of the file is a place that errors
// name and that tools for text can find. Reading the result gives the same workflow, but for Dir. Write fails with kind
// Invalid if the format cannot hold the workflow (no name, or no tasks), else with the error of the writer.
//
// A value that follows from another is left out: x-corral gives memory and estimate only where they differ from the
// measured values.
func Write(w io.Writer, wf *workflow.Workflow) error {
	if wf.Name == "" || len(wf.Tasks) == 0 {
		return corral.Errorf(corral.Invalid, "a workflow file needs a name and at least one task")
	}
	p := &printer{w: bufio.NewWriterSize(w, 64<<10)}
	p.enc = json.NewEncoder(p.w)
	p.enc.SetEscapeHTML(false) // commands are full of < and &
	p.header(wf)
	p.specification(wf)
	p.execution(wf)
	p.text("}}\n")
	return p.w.Flush()
}

// A printer writes the parts of a file one after the other. Its writer remembers the first error until it is flushed;
// there are no others, because every value that a workflow holds has a JSON form.
type printer struct {
	w   *bufio.Writer
	enc *json.Encoder
}

// text writes a piece of JSON that is no value: delimiters and names.
func (p *printer) text(s string) { _, _ = p.w.WriteString(s) }

// value ends with a newline.
func (p *printer) value(v any) { _ = p.enc.Encode(v) }

// field writes a field, unless its value is the zero of its type.
func (p *printer) field(name string, v any) {
	if reflect.ValueOf(v).IsZero() {
		return
	}
	p.text(`"` + name + `": `)
	p.value(v)
	p.text(",")
}

// list writes an array of n elements.
func (p *printer) list(name string, n int, element func(i int) any) {
	p.text(`"` + name + `": [` + "\n")
	for i := range n {
		if i > 0 {
			p.text(",")
		}
		p.value(element(i))
	}
	p.text("]")
}

// header writes what describes the workflow as a whole.
func (p *printer) header(wf *workflow.Workflow) {
	p.text("{")
	p.field("name", wf.Name)
	p.field("description", wf.Description)
	p.field("createdAt", formatTime(wf.CreatedAt))
	p.field("schemaVersion", version)
	p.field("author", wf.Author)
	p.field("runtimeSystem", wf.System)
}

// specification writes the structure: tasks with their parents, children and files, and the sizes of files as far as
// any are known.
func (p *printer) specification(wf *workflow.Workflow) {
	p.text(`"workflow": {` + "\n" + `"specification": {` + "\n")
	p.field(extensionKey, workflowExtensionOf(wf))
	p.list("tasks", len(wf.Tasks), func(i int) any {
		t := &wf.Tasks[i]
		return specTask{
			Name:     t.Name,
			ID:       t.ID,
			Parents:  ids(wf, wf.Graph.Parents(i)),
			Children: ids(wf, wf.Graph.Children(i)),
			Inputs:   t.Inputs,
			Outputs:  t.Outputs,
			Corral:   extensionOf(wf, t),
		}
	})
	if wf.FileSizes != nil {
		p.text(",\n")
		files := slices.Sorted(maps.Keys(wf.FileSizes))
		p.list("files", len(files), func(i int) any { return dataFile{files[i], amount(wf.FileSizes[files[i]])} })
	}
	p.text("},\n")
}

// execution writes commands, cpus and what was measured. The format demands a makespan and a time even of a workflow
// that never ran; parseTime knows the time that stands for none.
func (p *printer) execution(wf *workflow.Workflow) {
	p.text(`"execution": {`)
	p.field("makespanInSeconds", (*seconds)(&wf.Makespan)) // a pointer: 0 is written, too
	p.field("executedAt", cmp.Or(formatTime(wf.ExecutedAt), formatTime(time.Unix(0, 0))))
	p.list("tasks", len(wf.Tasks), func(i int) any { return execTaskOf(&wf.Tasks[i]) })
	if len(wf.Machines) > 0 {
		p.text(",\n")
		p.list("machines", len(wf.Machines), func(i int) any { return wf.Machines[i] })
	}
	p.text("}\n")
}

// ids names tasks; the format demands an array, even an empty one.
func ids(w *workflow.Workflow, tasks []int) []string {
	ids := make([]string, len(tasks))
	for k, i := range tasks {
		ids[k] = w.Tasks[i].ID
	}
	return ids
}

// extensionOf is what x-corral must say of the task, or nil. What follows from the measured values is left out; reading
// it gives the same task. That nothing was measured is said where a runtime of 0 would pass for one.
func extensionOf(wf *workflow.Workflow, t *workflow.Task) *extension {
	x := extension{
		GPUs:    t.GPUs,
		DiskMiB: t.DiskMiB,
		Retries: t.Retries,
		Timeout: seconds(t.Timeout),
		Env:     t.Env,
		Stdin:   t.Stdin,
		Stdout:  t.Stdout,
		Stderr:  t.Stderr,
		Names:   t.Names,
		Control: controlOf(t.Control),
	}
	if t.MemoryMiB != mebibytes(t.MemoryBytes) {
		x.MemoryMiB = &t.MemoryMiB
	}
	if _, known := t.Estimated(); t.Estimate != t.Runtime || !known && wf.Makespan > 0 {
		x.Estimate = (*seconds)(&t.Estimate)
	}
	x.Instant = t.Instant && x.Estimate == nil && wf.Makespan == 0 // with a makespan, a runtime of 0 says it
	if reflect.ValueOf(x).IsZero() {
		return nil
	}
	return &x
}

// execTaskOf is what the execution part says of a task, also of one that never ran.
func execTaskOf(t *workflow.Task) execTask {
	cores := float64(t.CPUs)
	e := execTask{
		ID:         t.ID,
		Runtime:    (*seconds)(&t.Runtime),
		ExecutedAt: formatTime(t.StartedAt),
		Cores:      &cores,
		Read:       amount(t.ReadBytes),
		Written:    amount(t.WrittenBytes),
		Memory:     amount(t.MemoryBytes),
	}
	if len(t.Argv) > 0 {
		e.Command = &command{t.Argv[0], t.Argv[1:]}
	}
	if t.Runtime > 0 {
		e.AvgCPU = 100 * float64(t.CPUTime) / float64(t.Runtime)
	}
	if t.Worker != "" {
		e.Machines = []string{t.Worker}
	}
	return e
}
