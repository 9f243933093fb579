package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/wfformat"
)

// layerWidth limits the number of tasks in a layer of a generated workflow: more than any cluster here runs at once.
const layerWidth = 10_000

// cpus is the assumed number of cpus of the workers of the drained workflow.
const cpus = 2

// writeLayers generates a workflow file: each task reads the outputs of two tasks in the previous layer and writes one
// file.
func writeLayers(file string, n int) error {
	wf := &workflow.Workflow{Name: "layers"}
	b := workflow.NewBuilder(wf, workflow.Options{})
	b.FileOrder = true
	b.Grow(n)
	output := func(i int) string { return fmt.Sprintf("part.%07d", i) }
	width := min(layerWidth, max(1, n/10))
	for i := range n {
		t := workflow.Task{
			ID: fmt.Sprintf("step_%07d", i), Name: "step", Outputs: []string{output(i)},
			Argv: []string{"step", "--output", output(i)}, Estimate: time.Duration(1+i%7) * time.Second,
		}
		if above := i - width; above >= 0 {
			t.Inputs = []string{output(above), output(above - above%width + (above+1)%width)}
		}
		if err := b.Add(t, workflow.Place{}); err != nil {
			return err
		}
	}
	if err := b.Build(workflow.Place{}); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(wfformat.Write(f, wf), f.Close())
}

// drain reads, ranks and drains one workflow file, and writes the measurements.
func drain(ctx context.Context, file string, out io.Writer) error {
	d := drained{}
	began := time.Now()
	lap := func(to *time.Duration) {
		*to, began = time.Since(began), time.Now()
	}
	flow, err := loadRunnable(ctx, file, &d)
	if err != nil {
		return err
	}
	lap(&d.Load)
	x := execution.New(specOf(flow))
	lap(&d.Rank)
	if err := drainAll(x); err != nil {
		return err
	}
	lap(&d.Drain)
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return err
	}
	d.CPU = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	d.Tasks = len(flow.Tasks)
	if d.PeakKiB, err = peak(); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(d)
}

// loadRunnable reads a workflow file with the checks that a run makes.
func loadRunnable(ctx context.Context, file string, d *drained) (*workflow.Workflow, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	d.Bytes = info.Size()
	flow, _, err := wfformat.Read(ctx, f, file, workflow.Options{})
	if err != nil {
		return nil, err
	}
	return flow, cmp.Or(flow.Runnable(), flow.Schedulable())
}

// specOf returns the part of a workflow that decisions need.
func specOf(flow *workflow.Workflow) execution.Spec {
	spec := execution.Spec{Graph: flow.Graph, Tasks: make([]execution.TaskSpec, len(flow.Tasks))}
	for i, estimate := range flow.Estimates(time.Minute) {
		t := &flow.Tasks[i]
		spec.Tasks[i] = execution.TaskSpec{
			ID: t.ID, CPUs: t.CPUs, MemoryMiB: t.MemoryMiB, Estimate: max(estimate, time.Millisecond),
		}
	}
	return spec
}

// drainAll releases, assigns and ends tasks until all are done. Each round advances the time by a millisecond.
func drainAll(x *execution.Execution) error {
	now := time.Unix(1_700_000_000, 0)
	offer := execution.Offer{CPUs: cpus}
	for !x.Done() {
		jobs := x.Release(now, offer)
		if len(jobs) == 0 {
			return errors.New("tasks remain, but none of them is released")
		}
		for _, j := range jobs {
			apply(x, j, now)
		}
		now = now.Add(time.Millisecond)
	}
	if c := x.Counts(); c != (corral.RunTasks{Total: c.Total, Done: c.Total}) {
		return fmt.Errorf("the workflow is drained, but not done: %+v", c)
	}
	return nil
}

// apply records that a worker took a job and ended each of its tasks.
func apply(x *execution.Execution, j execution.Job, now time.Time) {
	const worker = "bench/0"
	at := execution.ToMsec(now)
	parts := make([]execution.Part, len(j.Tasks))
	for k, t := range j.Tasks {
		parts[k] = execution.Part{Task: int32(t.Index), Attempt: int32(t.Attempt)}
	}
	x.Apply(execution.Record{At: at, Assigned: &execution.Assignment{Seq: j.Seq, Worker: worker, Parts: parts}})
	for _, t := range j.Tasks {
		x.Apply(execution.Record{At: at, Finished: &execution.Outcome{
			Seq: j.Seq, Task: int32(t.Index), Attempt: int32(t.Attempt), Status: execution.Done, Worker: worker,
			Started: at, Ended: at + 1,
		}})
	}
}

// peak returns the peak resident memory of this process, in KiB. getrusage(2) would return that of the process that
// started it, if it was larger: its memory counts until exec.
func peak() (kib int64, err error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	_, err = fmt.Sscanf(rest, "%d kB", &kib)
	return kib, err
}
