package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/execution"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/wfformat"
)

// A plan is what never changes of a run: its workflow, where it runs, and what decisions need of both.
type plan struct {
	run  corral.RunID
	dir  string
	mark string // of dir, for workers on machines that have something else under its name
	flow *workflow.Workflow
	spec execution.Spec
}

// shortest is what a task is assumed to take of which 0 was measured.
const shortest = time.Millisecond

// newPlan reads the workflow and works out the plan: what the decisions need of it, with the options of the run for
// what a task leaves open. Errors are Invalid and name their place, but for the end of ctx.
func newPlan(ctx context.Context, name string, document []byte, o corral.RunOptions) (*plan, error) {
	flow, _, err := wfformat.Read(ctx, bytes.NewReader(document), name, workflow.Options{})
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(flow.Runnable(), flow.Schedulable()); err != nil {
		return nil, err
	}
	clustering, err := corral.ParseClustering(o.Clustering)
	if err != nil {
		return nil, err
	}
	spec := execution.Spec{Graph: flow.Graph, Groups: clustering.Groups, Tasks: make([]execution.TaskSpec,
		len(flow.Tasks))}
	for i, estimate := range flow.Estimates(time.Duration(o.DefaultRuntime)) {
		t := &flow.Tasks[i]
		estimate = max(estimate, shortest)
		retries := o.Retries
		if t.Retries != nil {
			retries = *t.Retries
		}
		spec.Tasks[i] = execution.TaskSpec{
			ID: t.ID, CPUs: t.CPUs, MemoryMiB: t.MemoryMiB, GPUs: t.GPUs, DiskMiB: t.DiskMiB,
			Estimate: estimate, Retries: retries,
		}
	}
	return &plan{flow: flow, spec: spec}, nil
}

// index finds a task by its id.
func (p *plan) index(id string) (int, error) {
	i := slices.IndexFunc(p.flow.Tasks, func(t workflow.Task) bool { return t.ID == id })
	if i < 0 {
		return 0, corral.Errorf(corral.NotFound, "run %d has no task %s", p.run, id)
	}
	return i, nil
}

// complete adds to jobs what a worker needs and no decision does: where they run, and what their tasks run.
func (p *plan) complete(jobs []execution.Job) []execution.Job {
	for k := range jobs {
		j := &jobs[k]
		j.Run, j.Dir, j.Mark = p.run, p.dir, p.mark
		for n := range j.Tasks {
			made, t := &j.Tasks[n], &p.flow.Tasks[j.Tasks[n].Index]
			made.Argv, made.Inputs, made.Outputs, made.Timeout = t.Argv, t.Inputs, t.Outputs, t.Timeout
			made.Stdin, made.Stdout, made.Stderr = t.Stdin, t.Stdout, t.Stderr
			for _, key := range slices.Sorted(maps.Keys(t.Env)) {
				made.Env = append(made.Env, key+"="+t.Env[key])
			}
		}
	}
	return jobs
}

// ownInputs finds the files that the workflow reads and no task of it writes, below dir. All that are
// missing are named in one Invalid error.
func ownInputs(flow *workflow.Workflow, dir string) ([]link, error) {
	names := flow.OwnInputs()
	if len(names) > 0 && !filepath.IsAbs(dir) {
		return nil, corral.ErrorAt(corral.Invalid, "source_dir", "%q is not an absolute path", dir)
	}
	var links []link
	var missing []string
	for _, name := range names {
		source := filepath.Join(dir, name)
		if _, err := os.Stat(source); err != nil {
			missing = append(missing, name+" ("+reason(err)+")")
		}
		links = append(links, link{name, source})
	}
	if len(missing) > 0 {
		return nil, corral.ErrorAt(corral.Invalid, dir,
			"the workflow's own inputs are missing here: %s", strings.Join(missing, ", "))
	}
	return links, nil
}

// reason is the last part of an error of package os: what the path is has been said already.
func reason(err error) string {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}
