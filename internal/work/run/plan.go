package run

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/clustering"
	"github.com/corral-pilot/corral/workflow/profile"
)

// A plan is the immutable part of a run: its workflow, its directory, and the data on which decisions depend.
type plan struct {
	run  corral.RunID
	dir  string
	mark string // of dir, so that workers detect a different directory with the same path
	pack bool   // remove the directories of tasks that are done and left no files
	flow *workflow.Workflow
	spec execution.Spec

	care  execution.Care // for all tasks
	grown *grown         // nil: the run is not open
}

// shortest is the assumed runtime of a task with a measured runtime of 0.
const shortest = time.Millisecond

// planOf makes the plan of a workflow, or the empty plan of an open run, which has only a name.
func planOf(flow *workflow.Workflow, name string, o corral.RunOptions) (*plan, error) {
	if o.Open {
		return newOpenPlan(name, o)
	}
	return newPlan(flow, o)
}

// newPlan makes the plan of a workflow. The run's options provide the defaults of tasks. Errors are Invalid and name
// their place.
func newPlan(flow *workflow.Workflow, o corral.RunOptions) (*plan, error) {
	if err := cmp.Or(flow.Runnable(), flow.Schedulable()); err != nil {
		return nil, err
	}
	how, err := clustering.Parse(o.Clustering)
	if err != nil {
		return nil, err
	}
	spec := execution.Spec{Graph: flow.Graph, Tasks: make([]execution.TaskSpec, len(flow.Tasks))}
	done, kinds := flow.DoneBefore(), profile.Kinds(profile.Tasks(flow))
	for i, estimate := range flow.Estimates(time.Duration(o.DefaultRuntime)) {
		t := &flow.Tasks[i]
		_, given := t.Estimated()
		estimate = max(estimate, shortest)
		retries := o.Retries
		if t.Retries != nil {
			retries = *t.Retries
		}
		spec.Tasks[i] = execution.TaskSpec{
			ID: t.ID, Kind: kinds[i], CPUs: t.CPUs, MemoryMiB: t.MemoryMiB, GPUs: t.GPUs, DiskMiB: t.DiskMiB,
			Estimate: estimate, Usual: !given, Retries: retries, Done: done[i],
		}
	}
	spec.Clusters = jobsOf(flow, spec.Tasks, how)
	if err := addRules(&spec, flow, o); err != nil {
		return nil, err
	}
	return &plan{flow: flow, spec: spec}, nil
}

// jobsOf returns the lists of tasks that share a job, or nil if each task is a separate job.
func jobsOf(flow *workflow.Workflow, tasks []execution.TaskSpec, how clustering.Rule) [][]int {
	if how == (clustering.Rule{}) {
		return nil
	}
	all := make([]clustering.Unit, len(tasks))
	for i := range tasks {
		all[i] = clustering.Unit{Needs: tasks[i].Needs(), Estimate: tasks[i].Estimate, Label: flow.Tasks[i].Label()}
	}
	return clustering.Jobs(flow.Graph, all, how)
}

// index returns the index of a task, given its id.
func (p *plan) index(id string) (int, error) {
	if i, ok := p.number(id); p.grown != nil && ok {
		return i, nil
	}
	i := slices.IndexFunc(p.flow.Tasks, func(t workflow.Task) bool { return t.ID == id })
	if i < 0 {
		return 0, noTask("task", p.run, id, p.ids())
	}
	return i, nil
}

// ids yields the ids of all tasks.
func (p *plan) ids() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range p.flow.Tasks {
			if !yield(p.flow.Tasks[i].ID) {
				return
			}
		}
	}
}

// noTask returns the error for an id that is not among the ids of a run. It names some ids with this prefix, such as
// those of a node with several jobs, or else the first ids.
func noTask(place string, run corral.RunID, id string, ids iter.Seq[string]) error {
	const shown = 3
	var like, first []string // the first few of each
	likes, all := 0, 0
	for known := range ids {
		if all++; all <= shown {
			first = append(first, known)
		}
		if strings.HasPrefix(known, id) {
			if likes++; likes <= shown {
				like = append(like, known)
			}
		}
	}
	if likes == 0 {
		like, likes = first, all
	}
	there := strings.Join(like, ", ")
	if likes > shown {
		there += fmt.Sprintf(" and %d more", likes-shown)
	}
	return corral.ErrorAt(corral.NotFound, place, "run %d has no task %s; it has %s", run, id, there)
}

// complete adds the data to jobs that workers need but decisions do not: their directory, and the commands of their
// tasks.
func (p *plan) complete(jobs []execution.Job) []execution.Job {
	for k := range jobs {
		j := &jobs[k]
		j.Run, j.Dir, j.Mark, j.Pack, j.Care = p.run, p.dir, p.mark, p.pack, p.care
		for n := range j.Tasks {
			made, t := &j.Tasks[n], &p.flow.Tasks[j.Tasks[n].Index]
			made.Argv, made.Inputs, made.Outputs, made.Timeout = t.Argv, t.Inputs, t.Outputs, t.Timeout
			made.Stdin, made.Stdout, made.Stderr = t.Stdin, t.Stdout, t.Stderr
			made.Judged = t.Control != nil && t.Control.Post != nil
			if p.grown != nil {
				p.grown.of(made.Index).complete(made)
				continue
			}
			for _, key := range slices.Sorted(maps.Keys(t.Env)) {
				made.Env = append(made.Env, key+"="+t.Env[key])
			}
		}
	}
	return jobs
}

// inputs returns links to the files that must exist before the workflow runs: its own inputs below dir, and the outputs
// of tasks that were done before, below doneDir or else below dir. One Invalid error names all missing files, except
// files that a script may make before they are read. The links include the files that scripts need. They also include
// earlier outputs in doneDir that no task needs, so that the results are complete.
func inputs(flow *workflow.Workflow, dir, doneDir string) ([]link, error) {
	needed, scripted := flow.Needed(), flow.MadeByScripts()
	if dir == "" {
		if err := apart(flow); err != nil {
			return nil, err
		}
	}
	if (len(needed) > 0 || flow.Scripts()) && dir == "" {
		return nil, corral.ErrorAt(corral.Invalid, "source_dir",
			"missing: the workflow has its own inputs or scripts, "+
				"which must be in a folder on corrald's host")
	}
	if (len(needed) > 0 || flow.Scripts()) && !filepath.IsAbs(dir) {
		return nil, corral.ErrorAt(corral.Invalid, "source_dir", "%q is not an absolute path", dir)
	}
	made := madeBefore(flow)
	var links []link
	var missing []string
	for _, name := range needed {
		k := link{name, filepath.Join(dir, name)}
		if made[name] {
			k.from(doneDir)
		}
		delete(made, name)
		if err := usable(k.source); err != nil {
			if scripted[name] && errors.Is(err, fs.ErrNotExist) {
				continue
			}
			missing = append(missing, name+" ("+reason(err)+")")
		}
		links = append(links, k)
	}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if k := (link{name: name}); k.from(doneDir) {
			links = append(links, k)
		}
	}
	if len(missing) > 0 {
		return nil, corral.ErrorAt(corral.Invalid, dir,
			"the workflow's own inputs are missing here: %s", strings.Join(missing, ", "))
	}
	linked := make(map[string]bool)
	for i := range flow.Tasks {
		for _, f := range flow.Tasks[i].Outputs {
			linked[f] = true
		}
	}
	for _, k := range links {
		linked[k.name] = true
	}
	return append(links, scriptLinks(flow, dir, linked)...), nil
}

// usable returns the reason why a path cannot be an input. Pipes and devices are refused: a task that opens one, or a
// worker that sends it, may block forever.
func usable(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return err
	}
	return input.Regular(path, info)
}

// from sets the link's source to the file of its name below a folder, if that exists. The source is the file itself,
// not another run's link to it.
func (k *link) from(dir string) bool {
	if dir == "" {
		return false
	}
	file, err := filepath.EvalSymlinks(filepath.Join(dir, k.name))
	if err == nil {
		k.source = file
	}
	return err == nil
}

// madeBefore returns the outputs of tasks that were done before.
func madeBefore(flow *workflow.Workflow) map[string]bool {
	made := make(map[string]bool)
	for i, done := range flow.DoneBefore() {
		for _, f := range flow.Tasks[i].Outputs {
			if done {
				made[f] = true
			}
		}
	}
	return made
}

// reason returns an error of package os without the path, which the message already contains.
func reason(err error) string {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}
