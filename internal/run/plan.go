package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/dag"
	"github.com/corral-pilot/corral/internal/execution"
	"github.com/corral-pilot/corral/workflow"
)

// A plan is what never changes of a run: its workflow and what follows from it and the run's options.
type plan struct {
	run  corral.RunID
	dir  string
	mark string // of dir, for workers on machines that have something else under its name

	flow      *workflow.Workflow
	graph     *dag.Graph
	needs     []need          // of each task; time is its estimate
	rank      []time.Duration // upward rank of each task
	retries   []int32         // allowed for each task
	clusters  [][]int32       // tasks that are released together; each task is in one
	clusterOf []int32         // :: task → index in clusters
}

// newPlan reads the workflow and works out the plan. Errors are Invalid and name their place, but for the end of ctx.
func newPlan(ctx context.Context, name string, document []byte, o corral.RunOptions) (*plan, error) {
	flow, _, err := workflow.Read(ctx, bytes.NewReader(document), name, workflow.Options{})
	if err != nil {
		return nil, err
	}
	if err := flow.Runnable(); err != nil {
		return nil, err
	}
	groups, err := parseClustering(o.Clustering)
	if err != nil {
		return nil, err
	}
	p := &plan{flow: flow, graph: flow.Graph}
	estimates := flow.Estimates(time.Duration(o.DefaultRuntime))
	p.rank = p.graph.UpwardRanks(estimates)
	p.needs = make([]need, len(flow.Tasks))
	p.retries = make([]int32, len(flow.Tasks))
	for i, t := range flow.Tasks {
		p.needs[i] = need{t.CPUs, t.MemoryMiB, estimates[i]}
		p.retries[i] = int32(o.Retries)
		if t.Retries != nil {
			p.retries[i] = int32(*t.Retries)
		}
	}
	p.cluster(groups)
	return p, nil
}

const (
	clusteringNone       = "none"
	clusteringHorizontal = "horizontal="
)

// parseClustering reads what --clustering takes; 0 groups: each task is a job of its own.
func parseClustering(s string) (groups int, err error) {
	if s == clusteringNone || s == "" {
		return 0, nil
	}
	n, ok := strings.CutPrefix(s, clusteringHorizontal)
	if groups, err = strconv.Atoi(n); !ok || err != nil || groups < 1 {
		return 0, fmt.Errorf("%q is neither %s nor %sN with N at least 1", s, clusteringNone, clusteringHorizontal)
	}
	return groups, nil
}

// cluster groups the tasks: each level into so many groups, or each task alone.
func (p *plan) cluster(groups int) {
	n := p.graph.Len()
	all := make([]int32, n) // backs the clusters
	p.clusterOf = make([]int32, n)
	if groups == 0 {
		p.clusters = make([][]int32, n)
		for i := range n {
			all[i], p.clusterOf[i] = int32(i), int32(i)
			p.clusters[i] = all[i : i+1 : i+1]
		}
		return
	}
	for c, nodes := range dag.ByLevel(p.graph, groups, p.kinds()) {
		var tasks []int32
		tasks, all = all[:len(nodes):len(nodes)], all[len(nodes):]
		for k, i := range nodes {
			tasks[k], p.clusterOf[i] = int32(i), int32(c)
		}
		p.clusters = append(p.clusters, tasks)
	}
}

// kinds numbers the different needs of cpus and memory: only tasks with the same share a job.
func (p *plan) kinds() []int {
	kinds := make([]int, len(p.needs))
	number := make(map[need]int)
	for i, n := range p.needs {
		n.time = 0
		k, ok := number[n]
		if !ok {
			k = len(number)
			number[n] = k
		}
		kinds[i] = k
	}
	return kinds
}

func (p *plan) id(i int32) string { return p.flow.Tasks[i].ID }

// index finds a task by its id.
func (p *plan) index(id string) (int32, error) {
	i := slices.IndexFunc(p.flow.Tasks, func(t workflow.Task) bool { return t.ID == id })
	if i < 0 {
		return 0, corral.Errorf(corral.NotFound, "run %d has no task %s", p.run, id)
	}
	return int32(i), nil
}

// priority is the highest upward rank of tasks, in seconds.
func (p *plan) priority(tasks []int32) float64 {
	var highest time.Duration
	for _, i := range tasks {
		highest = max(highest, p.rank[i])
	}
	return highest.Seconds()
}

// poolTask returns task i as a worker is given it, without attempt and estimate.
func (p *plan) poolTask(i int32) execution.Task {
	t := &p.flow.Tasks[i]
	made := execution.Task{
		Index: int(i), ID: t.ID, Argv: t.Argv, Inputs: t.Inputs, Outputs: t.Outputs,
		Stdin: t.Stdin, Stdout: t.Stdout, Stderr: t.Stderr, Timeout: t.Timeout,
	}
	for _, key := range slices.Sorted(maps.Keys(t.Env)) {
		made.Env = append(made.Env, key+"="+t.Env[key])
	}
	return made
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
		return nil, corral.ErrorAt(corral.Invalid, dir, "the workflow's own inputs are missing here: %s", strings.Join(missing, ", "))
	}
	return links, nil
}

// reason is the last part of an error of package os: what the path is has been said already.
func reason(err error) string {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
