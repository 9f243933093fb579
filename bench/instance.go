package main

// Published workflows with sleeping tasks: their graphs and the proportions of their runtimes are real, but they need
// neither their programs nor their files, and take seconds instead of hours.

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// readInstance reads a published workflow.
func readInstance(ctx context.Context, file string) (*workflow.Workflow, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	wf, _, err := wfformat.Read(ctx, text, file, workflow.Options{})
	if err == nil {
		wf.Name = strings.TrimSuffix(filepath.Base(file), ".json.gz")
	}
	return wf, err
}

// An asleep replaces a workflow's tasks with sleeping ones.
type asleep struct {
	scale float64 // factor for the measured runtimes
	err   float64 // each task sleeps for 1−err to 1+err times its estimate, depending on its id and the seed
	seed  uint64
}

// document encodes the workflow for corrald.
func (a asleep) document(wf *workflow.Workflow) ([]byte, error) {
	out := &workflow.Workflow{Name: wf.Name}
	b := workflow.NewBuilder(out, workflow.Options{})
	for i := range wf.Tasks {
		t := &wf.Tasks[i]
		runtime := a.estimate(t.Runtime)
		actual := time.Duration(float64(runtime) * a.factor(t.ID))
		err := b.Add(workflow.Task{ID: t.ID, Name: kindOf(t), Estimate: runtime,
			Argv: []string{"sleep", strconv.FormatFloat(actual.Seconds(), 'f', 4, 64)}}, workflow.Place{})
		if err != nil {
			return nil, err
		}
		for _, c := range wf.Graph.Children(i) {
			b.Edge(t.ID, wf.Tasks[c].ID, workflow.Place{})
		}
	}
	if err := b.Build(workflow.Place{}); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err := wfformat.Write(&text, out)
	return text.Bytes(), err
}

// kindOf returns the name that a task shares with similar tasks: the published names of many are unique like ids.
func kindOf(t *workflow.Task) string {
	if len(t.Argv) == 0 {
		return t.Name
	}
	return filepath.Base(t.Argv[0])
}

// estimate returns a scaled runtime, in whole milliseconds and at least one: 0 would not be an estimate.
func (a asleep) estimate(measured time.Duration) time.Duration {
	return max(time.Millisecond, time.Duration(float64(measured)*a.scale).Round(time.Millisecond))
}

// factor returns the ratio of a task's runtime to its estimate. It depends only on the task and the seed, so that all
// plans of a workflow meet the same runtimes.
func (a asleep) factor(id string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return 1 + a.err*(2*rand.New(rand.NewPCG(a.seed, h.Sum64())).Float64()-1)
}

// fastest returns the largest scale at which the mean runtime of tasks does not exceed mean, and the critical path does
// not exceed a share of span.
func fastest(wf *workflow.Workflow, span, mean time.Duration) float64 {
	var work, critical time.Duration
	end := make([]time.Duration, len(wf.Tasks))
	for _, i := range wf.Graph.Order() {
		end[i] += wf.Tasks[i].Runtime
		work, critical = work+wf.Tasks[i].Runtime, max(critical, end[i])
		for _, c := range wf.Graph.Children(i) {
			end[c] = max(end[c], end[i])
		}
	}
	if work == 0 {
		return 1
	}
	return min(float64(mean)*float64(len(wf.Tasks))/float64(work), 0.8*float64(span)/float64(critical))
}
