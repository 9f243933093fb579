package wfformat

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"

	"github.com/corral-pilot/corral/workflow"
)

// The parts of a WfFormat 1.4 file. A task contains all its data, including files with their sizes, and refers to other
// tasks by their names.
type (
	task14 struct {
		Name     string   `json:"name"`
		ID       string   `json:"id"`       // optional
		Category string   `json:"category"` // the transformation; optional
		Command  *command `json:"command"`
		Parents  []string `json:"parents"`
		Children []string `json:"children"`
		Files    []file14 `json:"files"`

		Runtime *seconds `json:"runtimeInSeconds"`
		Cores   *float64 `json:"cores"`
		AvgCPU  float64  `json:"avgCPU"`
		Read    amount   `json:"readBytes"`
		Written amount   `json:"writtenBytes"`
		Memory  amount   `json:"memoryInBytes"`
		Machine string   `json:"machine"`
		notKept14
	}

	// notKept14 lists recognized fields that are not kept.
	notKept14 struct {
		Type     string      `json:"type"` // compute, transfer or auxiliary
		Energy   json.Number `json:"energy"`
		Power    json.Number `json:"avgPower"`
		Priority json.Number `json:"priority"`
	}

	file14 struct {
		Name string  `json:"name"`
		Path string  `json:"path"` // prefix of the name
		Size *amount `json:"sizeInBytes"`
		Link string  `json:"link"` // input or output
	}

	machine14 struct {
		Name    string `json:"nodeName"`
		System  string `json:"system"`
		Arch    string `json:"architecture"`
		Release string `json:"release"`
		Memory  amount `json:"memoryInBytes"`
		CPU     struct {
			Count  float64 `json:"count"`
			Speed  float64 `json:"speed"`
			Vendor string  `json:"vendor"`
		} `json:"cpu"`
	}
)

// tasks14 holds the data that is deferred until every task of a 1.4 document is known: edges, with the names that the
// document uses for tasks, and the sizes of files.
type tasks14 struct {
	names map[string]string // :: id in the document, if it differs from the task's → id of the task
	refs  []ref14
	sizes workflow.Sizes
}

// A ref14 is an edge between a task and another task, which is identified by its name in the document.
type ref14 struct {
	task, other string
	toChild     bool // the other task is the child
	at          workflow.Place
}

// task14 adds a task. Other tasks refer to it by its name or, if its id differs from the name, by its id; therefore the
// name becomes the task's id, unless another task has the same name.
func (r *reader) task14(s *task14, at workflow.Place) error {
	id := cmp.Or(s.Name, s.ID)
	if _, taken := r.builder.Index(id); taken && s.ID != "" && s.ID != id {
		id += "_" + s.ID
	}
	if s.ID != "" && s.ID != id {
		if r.tasks.names == nil {
			r.tasks.names = make(map[string]string)
		}
		if _, taken := r.tasks.names[s.ID]; !taken {
			r.tasks.names[s.ID] = id
		}
	}
	t := workflow.Task{ID: id, Name: s.Category}
	if err := r.files14(&t, s.Files, at); err != nil {
		return err
	}
	if err := (*extension)(nil).apply(&t); err != nil {
		return err
	}
	if err := r.builder.Add(t, at); err != nil {
		return err
	}
	for _, parent := range s.Parents {
		r.tasks.refs = append(r.tasks.refs, ref14{id, r.builder.Intern(parent), false, at})
	}
	for _, child := range s.Children {
		r.tasks.refs = append(r.tasks.refs, ref14{id, r.builder.Intern(child), true, at})
	}
	return r.keep(s.execution(id), at)
}

// files14 adds files to a task, and records their sizes.
func (r *reader) files14(t *workflow.Task, files []file14, at workflow.Place) error {
	for _, f := range files {
		id := f.Path + f.Name
		writes := strings.EqualFold(f.Link, "output")
		switch {
		case writes:
			t.Outputs = append(t.Outputs, id)
		case strings.EqualFold(f.Link, "input"):
			t.Inputs = append(t.Inputs, id)
		default:
			return at.Errorf("task %q: file %q: link is %q, want input or output", t.ID, id, f.Link)
		}
		if f.Size != nil {
			r.tasks.sizes.Use(r.builder.Intern(id), int64(*f.Size), writes, at)
		}
	}
	return nil
}

// execution returns the execution data of a 1.4 task in the form of version 1.5.
func (s *task14) execution(id string) execTask {
	e := execTask{
		ID: id, Runtime: s.Runtime, Command: s.Command, Cores: s.Cores, AvgCPU: s.AvgCPU,
		Read: s.Read, Written: s.Written, Memory: s.Memory,
	}
	if s.Machine != "" {
		e.Machines = []string{s.Machine}
	}
	return e
}

// machines14 reads the list of machines.
func (r *reader) machines14(path string) error {
	var all []machine14
	if err := value(r.doc, &all)(path); err != nil {
		return err
	}
	for _, m := range all {
		r.wf.Machines = append(r.wf.Machines, workflow.Machine{
			Name: m.Name, System: m.System, Arch: m.Arch, Release: m.Release, MemoryBytes: int64(m.Memory),
			CPU: workflow.CPU{Cores: countable(m.CPU.Count), SpeedMHz: countable(m.CPU.Speed), Vendor: m.CPU.Vendor},
		})
	}
	return nil
}

// countable rounds a value up to an integer, and returns 0 (unknown) for unreasonable values.
func countable(v float64) int {
	if !(v > 0 && v <= math.MaxInt32) {
		return 0
	}
	return int(math.Ceil(v))
}

// finish passes the edges and the sizes to the builder.
func (t *tasks14) finish(r *reader) error {
	for _, ref := range t.refs {
		other := ref.other
		if _, ok := r.builder.Index(other); !ok {
			other = cmp.Or(t.names[other], other)
		}
		if ref.toChild {
			r.builder.Edge(ref.task, other, ref.at)
		} else {
			r.builder.Edge(other, ref.task, ref.at)
		}
		r.ofChildren = append(r.ofChildren, ref.toChild)
	}
	t.refs = nil
	return t.sizes.Give(r.builder, r.doc.here())
}
