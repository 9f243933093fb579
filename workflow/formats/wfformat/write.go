package wfformat

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
)

// Write writes a workflow in WfFormat 1.5, with one task or file per line, so that errors can name the line of a task,
// and text tools can find it. Reading the result yields the same workflow, except for Dir. Write fails with kind
// Invalid if the format cannot represent the workflow (no name, or no tasks), otherwise with the error of the writer.
//
// The format allows letters, digits and - _ . # in ids. A task with other characters in its id is written with a
// different id, and its own id is written to x-corral.
//
// A value that can be derived from another value is omitted: x-corral contains memory and estimate only if they differ
// from the measured values.
func Write(w io.Writer, wf *workflow.Workflow) error {
	if wf.Name == "" || len(wf.Tasks) == 0 {
		return corral.Errorf(corral.Invalid, "a workflow file needs a name and at least one task")
	}
	p := &printer{w: bufio.NewWriterSize(w, 64<<10), ids: legalIDs(wf)}
	p.enc = json.NewEncoder(p.w)
	p.enc.SetEscapeHTML(false) // commands contain many < and &
	p.header(wf)
	p.specification(wf)
	p.execution(wf)
	p.text("}}\n")
	return p.w.Flush()
}

// A printer writes the parts of a file in order. Its buffered writer keeps the first error until it is flushed; no
// other errors can occur, because every value of a workflow can be encoded as JSON.
type printer struct {
	w   *bufio.Writer
	enc *json.Encoder
	ids map[int]string // :: task → its written id, if it differs from the task's id
}

// text writes a piece of JSON that is not a value: delimiters and names.
func (p *printer) text(s string) { _, _ = p.w.WriteString(s) }

// value writes a value and a newline.
func (p *printer) value(v any) { _ = p.enc.Encode(v) }

// field writes a field, unless its value is zero.
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

// header writes the data about the workflow as a whole.
func (p *printer) header(wf *workflow.Workflow) {
	p.text("{")
	p.field("name", wf.Name)
	p.field("description", wf.Description)
	p.field("createdAt", formatTime(wf.CreatedAt))
	p.field("schemaVersion", version)
	p.field("author", wf.Author)
	p.field("runtimeSystem", wf.System)
}

// specification writes the structure: tasks with their parents, children and files, and the known sizes of files.
func (p *printer) specification(wf *workflow.Workflow) {
	p.text(`"workflow": {` + "\n" + `"specification": {` + "\n")
	p.field(extensionKey, workflowExtensionOf(wf))
	p.list("tasks", len(wf.Tasks), func(i int) any {
		t := &wf.Tasks[i]
		return specTask{
			Name:     t.Name,
			ID:       p.id(wf, i),
			Parents:  p.idsOf(wf, wf.Graph.Parents(i)),
			Children: p.idsOf(wf, wf.Graph.Children(i)),
			Inputs:   t.Inputs,
			Outputs:  t.Outputs,
			Corral:   p.extensionOf(wf, i),
		}
	})
	if wf.FileSizes != nil {
		p.text(",\n")
		files := slices.Sorted(maps.Keys(wf.FileSizes))
		p.list("files", len(files), func(i int) any { return dataFile{files[i], amount(wf.FileSizes[files[i]])} })
	}
	p.text("},\n")
}

// execution writes commands, cpus and measurements. The format requires a makespan and a time even for a workflow that
// never ran; parseTime recognizes the placeholder.
func (p *printer) execution(wf *workflow.Workflow) {
	p.text(`"execution": {`)
	p.field("makespanInSeconds", (*seconds)(&wf.Makespan)) // a pointer: 0 is also written
	p.field("executedAt", cmp.Or(formatTime(wf.ExecutedAt), formatTime(time.Unix(0, 0))))
	p.list("tasks", len(wf.Tasks), func(i int) any { return execTaskOf(&wf.Tasks[i], p.id(wf, i)) })
	if len(wf.Machines) > 0 {
		p.text(",\n")
		p.list("machines", len(wf.Machines), func(i int) any { return wf.Machines[i] })
	}
	p.text("}\n")
}

// idsOf returns the written ids of tasks. The result is never nil, because the format requires an array, even if it is
// empty.
func (p *printer) idsOf(wf *workflow.Workflow, tasks []int) []string {
	ids := make([]string, len(tasks))
	for k, i := range tasks {
		ids[k] = p.id(wf, i)
	}
	return ids
}

// id returns the written id of a task.
func (p *printer) id(wf *workflow.Workflow, i int) string { return cmp.Or(p.ids[i], wf.Tasks[i].ID) }

// legalIDs returns the ids to write for tasks whose own ids the format does not allow.
func legalIDs(wf *workflow.Workflow) map[int]string {
	ids := make(map[int]string)
	for i := range wf.Tasks {
		if id := wf.Tasks[i].ID; strings.ContainsFunc(id, isIllegal) {
			ids[i] = ""
		}
	}
	if len(ids) == 0 {
		return nil
	}
	taken := make(workflow.Names, len(wf.Tasks))
	for i := range wf.Tasks {
		if _, illegal := ids[i]; !illegal {
			taken.Take(wf.Tasks[i].ID)
		}
	}
	for i := range wf.Tasks {
		if _, illegal := ids[i]; illegal {
			ids[i] = taken.Take(strings.Map(legal, wf.Tasks[i].ID))
		}
	}
	return ids
}

// isIllegal reports whether the format does not allow a character in ids.
func isIllegal(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.#", r))
}

// legal returns the character itself if the format allows it in ids, and its replacement otherwise.
func legal(r rune) rune {
	if isIllegal(r) {
		return '_'
	}
	return r
}

// extensionOf returns the extension for the task, or nil if none is needed. Values that can be derived from
// measurements are omitted; reading the result yields the same task. If nothing was measured, the extension states this
// whenever a runtime of 0 would be mistaken for a measurement.
func (p *printer) extensionOf(wf *workflow.Workflow, i int) *extension {
	t := &wf.Tasks[i]
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
	x.Instant = t.Instant && x.Estimate == nil && wf.Makespan == 0 // with a makespan, a runtime of 0 implies it
	if p.ids[i] != "" {
		x.ID = t.ID
	}
	if reflect.ValueOf(x).IsZero() {
		return nil
	}
	return &x
}

// execTaskOf returns the execution data of a task, even if the task never ran.
func execTaskOf(t *workflow.Task, id string) execTask {
	cores := float64(t.CPUs)
	e := execTask{
		ID:         id,
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
