package clustering

import (
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/workflow"
)

// A Script is a file that a job of several tasks runs.
type Script struct{ Name, Text string }

// Join returns the workflow whose tasks are the jobs that a rule makes from the tasks of wf, and the necessary scripts.
// A task that does not share its job is unchanged. A task whose Control specifies more than a priority or a label, or a
// task with files outside the workflow's folder, is also unchanged, and splits the job to which it would belong. wf is
// not modified.
//
// The error has kind Unsatisfiable if wf has sub-DAGs, because their jobs are made elsewhere.
func Join(wf *workflow.Workflow, rule Rule) (*workflow.Workflow, []Script, error) {
	for _, s := range wf.Subworkflows {
		if !s.Job {
			return nil, nil, corral.ErrorAt(corral.Unsatisfiable, wf.Place(s.First).String(),
				"sub-DAG %q: tasks of a workflow with sub-DAGs cannot share jobs here", workflow.Short(s.Name))
		}
	}
	j := joiner{from: wf, job: make([]string, len(wf.Tasks)), names: make(workflow.Names)}
	j.to = &workflow.Workflow{
		Name: wf.Name, Description: wf.Description, FileSizes: maps.Clone(wf.FileSizes), Dir: wf.Dir,
		Categories: wf.Categories,
	}
	j.builder = workflow.NewBuilder(j.to, workflow.Options{})
	for i := range wf.Tasks {
		j.names.Take(wf.Tasks[i].ID)
		for _, f := range slices.Concat(wf.Tasks[i].Inputs, wf.Tasks[i].Outputs) {
			j.names[f] = 1 // names of tasks' files must not be used for scripts
		}
	}
	for _, members := range jobs(wf, rule) {
		if err := j.add(members); err != nil {
			return nil, nil, err
		}
	}
	return j.to, j.scripts, j.connect()
}

// jobs returns the tasks of each job, parents first; together the jobs contain all tasks of wf.
func jobs(wf *workflow.Workflow, rule Rule) (all [][]int) {
	tasks := make([]Unit, len(wf.Tasks))
	for i, estimate := range wf.Estimates(0) {
		t := &wf.Tasks[i]
		tasks[i] = Unit{Needs: t.Resources, Estimate: estimate, Label: t.Label()}
	}
	made := Jobs(wf.Graph, tasks, rule)
	if made == nil {
		for i := range wf.Tasks {
			made = append(made, []int{i})
		}
	}
	for _, members := range made {
		begin := 0
		for k, i := range members {
			if alone(&wf.Tasks[i]) {
				all = append(all, members[begin:k], members[k:k+1])
				begin = k + 1
			}
		}
		all = append(all, members[begin:])
	}
	return slices.DeleteFunc(all, func(members []int) bool { return len(members) == 0 })
}

// alone reports whether a task must not share a job, because a script could not provide everything that it needs.
func alone(t *workflow.Task) bool {
	if c := t.Control; c != nil {
		rest := *c
		rest.Label, rest.Priority = "", 0
		if rest != (workflow.Control{}) {
			return true
		}
	}
	words := slices.Concat(t.Argv, t.Inputs, t.Outputs, []string{t.ID})
	for name, value := range t.Env {
		words = append(words, value)
		if name == "" || strings.Contains(name, "=") {
			return true
		}
	}
	if len(t.Argv) == 0 || slices.ContainsFunc(words, func(s string) bool { return strings.Contains(s, "\x00") }) {
		return true
	}
	files := slices.Concat(t.Inputs, t.Outputs)
	for _, file := range append(files, slices.Collect(maps.Values(t.Names))...) {
		if !filepath.IsLocal(file) {
			return true
		}
	}
	return false
}

// A joiner is the state of one call of Join.
type joiner struct {
	from, to *workflow.Workflow
	builder  *workflow.Builder
	job      []string // :: task of from → the id of its task in to
	names    workflow.Names
	scripts  []Script
}

// add adds a job to the new workflow as a task.
func (j *joiner) add(members []int) error {
	first := members[0]
	task := j.from.Tasks[first]
	if len(members) > 1 {
		task = j.together(members)
	}
	for _, i := range members {
		j.job[i] = task.ID
	}
	return j.builder.Add(task, j.from.Place(first))
}

// together returns the task that runs several tasks. Its name is their common transformation, if they have one.
func (j *joiner) together(members []int) workflow.Task {
	tasks := make([]*workflow.Task, len(members))
	for k, i := range members {
		tasks[k] = &j.from.Tasks[i]
	}
	t := workflow.Task{Name: tasks[0].Name}
	if slices.ContainsFunc(tasks, func(other *workflow.Task) bool { return other.Name != t.Name }) {
		t.Name = "tasks"
	}
	t.ID = j.names.Take("job_" + t.Name)
	script := j.names.Take(t.ID + ".sh")
	t.Argv = []string{"sh", script}
	t.Stdout, t.Stderr = j.names.Take(t.ID+".out"), j.names.Take(t.ID+".err")
	t.Inputs, t.Outputs = filesOf(tasks)
	t.Inputs = append(t.Inputs, script)
	for _, member := range tasks {
		estimate, known := member.Estimated()
		t.Estimate += min(estimate, math.MaxInt64-t.Estimate)
		t.Instant = t.Estimate == 0 && known
		t.CPUs, t.GPUs = max(t.CPUs, member.CPUs), max(t.GPUs, member.GPUs)
		t.MemoryMiB, t.DiskMiB = max(t.MemoryMiB, member.MemoryMiB), max(t.DiskMiB, member.DiskMiB)
		if member.Retries != nil && (t.Retries == nil || *member.Retries > *t.Retries) {
			t.Retries = member.Retries
		}
		if c := member.Control; c != nil && c.Priority != 0 && (t.Control == nil || c.Priority > t.Control.Priority) {
			t.Control = &workflow.Control{Priority: c.Priority}
		}
	}
	j.scripts = append(j.scripts, Script{script, scriptOf(tasks, t.Outputs)})
	return t
}

// filesOf returns the inputs of a job, i.e. the files that one of its tasks reads and no earlier task of the job
// writes, and the outputs of the job.
func filesOf(tasks []*workflow.Task) (inputs, outputs []string) {
	given, made := make(map[string]bool), make(map[string]bool)
	for _, t := range tasks {
		for _, file := range t.Inputs {
			if !given[file] && !made[file] {
				given[file] = true
				inputs = append(inputs, file)
			}
		}
		for _, file := range t.Outputs {
			if !made[file] {
				made[file] = true
				outputs = append(outputs, file)
			}
		}
	}
	return inputs, outputs
}

// connect adds the edges between jobs that follow from the edges between their tasks, and completes the workflow.
func (j *joiner) connect() error {
	for i := range j.from.Tasks {
		for _, p := range j.from.Graph.Parents(i) {
			if j.job[p] != j.job[i] {
				j.builder.Edge(j.job[p], j.job[i], j.from.Place(i))
			}
		}
	}
	return j.builder.Build(j.from.Place(0))
}

// shortest is the runtime, in the computation of ranks, of a task without an estimate; it is not zero, so that a long
// path of such tasks ranks higher than a short one.
const shortest = time.Second

// Prioritise returns wf with priorities for a scheduler that does not use the graph: the longer the path from a task to
// the end of the workflow, the higher its priority. Existing priorities are kept. wf is not modified.
func Prioritise(wf *workflow.Workflow) *workflow.Workflow {
	ranks := wf.Graph.UpwardRanks(wf.Estimates(shortest))
	order := slices.Compact(slices.Sorted(slices.Values(ranks)))
	with := *wf
	with.Tasks = slices.Clone(wf.Tasks)
	for i := range with.Tasks {
		t := &with.Tasks[i]
		c := workflow.Control{}
		if t.Control != nil {
			c = *t.Control
		}
		if c.Priority != 0 {
			continue
		}
		c.Priority, _ = slices.BinarySearch(order, ranks[i])
		if c != (workflow.Control{}) {
			t.Control = &c
		}
	}
	return &with
}
