package workflow

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
)

// Write writes a workflow in WfFormat 1.5, one task or file a line. Reading the result gives the same
// workflow, but for Dir. It fails with kind Invalid if the format cannot hold it (no name, or no
// tasks), else with the error of the writer.
func Write(w io.Writer, wf *Workflow) error {
	if wf.Name == "" || len(wf.Tasks) == 0 {
		return corral.Errorf(corral.Invalid, "a workflow file needs a name and at least one task")
	}
	buffered := bufio.NewWriterSize(w, 64<<10)
	p := &printer{w: buffered, enc: json.NewEncoder(buffered)}
	p.enc.SetEscapeHTML(false) // commands are full of < and &
	p.header(wf)
	p.specification(wf)
	p.execution(wf)
	p.text("}}\n")
	if p.err != nil {
		return p.err
	}
	return buffered.Flush()
}

// A printer writes the parts of a file one after the other and remembers the first error.
type printer struct {
	w   *bufio.Writer
	enc *json.Encoder
	err error
}

func (p *printer) text(s string) {
	if p.err == nil {
		_, p.err = p.w.WriteString(s)
	}
}

func (p *printer) value(v any) {
	if p.err == nil {
		p.err = p.enc.Encode(v) // with a newline
	}
}

func (p *printer) field(name string, v any) {
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

func (p *printer) header(wf *Workflow) {
	p.text("{")
	p.field("name", wf.Name)
	if wf.Description != "" {
		p.field("description", wf.Description)
	}
	if !wf.CreatedAt.IsZero() {
		p.field("createdAt", formatTime(wf.CreatedAt))
	}
	p.field("schemaVersion", "1.5")
	if wf.Author != nil {
		p.field("author", wf.Author)
	}
	if wf.System != nil {
		p.field("runtimeSystem", wf.System)
	}
}

func (p *printer) specification(wf *Workflow) {
	p.text(`"workflow": {` + "\n" + `"specification": {` + "\n")
	p.list("tasks", len(wf.Tasks), func(i int) any {
		t := &wf.Tasks[i]
		return specTask{
			Name:     t.Name,
			ID:       t.ID,
			Parents:  wf.ids(wf.Graph.Parents(i)),
			Children: wf.ids(wf.Graph.Children(i)),
			Inputs:   t.Inputs,
			Outputs:  t.Outputs,
			Corral:   t.extension(),
		}
	})
	if wf.FileSizes != nil {
		p.text(",\n")
		files := slices.Sorted(maps.Keys(wf.FileSizes))
		p.list("files", len(files), func(i int) any { return dataFile{files[i], amount(wf.FileSizes[files[i]])} })
	}
	p.text("},\n")
}

func (p *printer) execution(wf *Workflow) {
	executedAt := wf.ExecutedAt
	if executedAt.IsZero() {
		executedAt = time.Unix(0, 0) // the format demands a time
	}
	p.text(`"execution": {`)
	p.field("makespanInSeconds", seconds(wf.Makespan))
	p.field("executedAt", formatTime(executedAt))
	p.list("tasks", len(wf.Tasks), func(i int) any { return wf.Tasks[i].execTask() })
	if len(wf.Machines) > 0 {
		p.text(",\n")
		p.list("machines", len(wf.Machines), func(i int) any { return wf.Machines[i] })
	}
	p.text("}\n")
}

// ids names tasks; the format wants an array, even an empty one.
func (w *Workflow) ids(tasks []int) []string {
	ids := make([]string, len(tasks))
	for k, i := range tasks {
		ids[k] = w.Tasks[i].ID
	}
	return ids
}

// extension is what x-corral must say of the task, or nil.
func (t *Task) extension() *extension {
	x := extension{
		Retries: t.Retries,
		Timeout: seconds(t.Timeout),
		Env:     t.Env,
		Stdin:   t.Stdin,
		Stdout:  t.Stdout,
		Stderr:  t.Stderr,
	}
	if t.MemoryMiB != mebibytes(t.MemoryBytes) {
		x.MemoryMiB = &t.MemoryMiB
	}
	if t.Estimate != t.Runtime {
		x.Estimate = (*seconds)(&t.Estimate)
	}
	if x.empty() {
		return nil
	}
	return &x
}

func (x *extension) empty() bool {
	return x.MemoryMiB == nil && x.Estimate == nil && x.Retries == nil && x.Timeout == 0 &&
		len(x.Env) == 0 && x.Stdin == "" && x.Stdout == "" && x.Stderr == ""
}

func (t *Task) execTask() execTask {
	cores := float64(t.CPUs)
	e := execTask{
		ID:      t.ID,
		Runtime: seconds(t.Runtime),
		Cores:   &cores,
		Read:    amount(t.ReadBytes),
		Written: amount(t.WrittenBytes),
		Memory:  amount(t.MemoryBytes),
	}
	if len(t.Argv) > 0 {
		e.Command = &command{t.Argv[0], t.Argv[1:]}
	}
	if t.Runtime > 0 {
		e.AvgCPU = 100 * float64(t.CPUTime) / float64(t.Runtime)
	}
	if !t.StartedAt.IsZero() {
		e.ExecutedAt = formatTime(t.StartedAt)
	}
	if t.Worker != "" {
		e.Machines = []string{t.Worker}
	}
	return e
}
