package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral/plan"
)

// A flow is a workflow whose tasks each run one command.
type flow struct{ tasks []task }

// A task of a flow depends on earlier ones.
type task struct {
	estimate, took float64 // seconds
	parents        []int
	children       []int
	command        []string
	rank           float64 // longest path from its start to the end
}

// drawn draws a workflow of sleeping tasks in levels, whose runtimes differ from their estimates by up to the share by.
func drawn(number int, by float64) *flow {
	rng := rand.New(rand.NewPCG(uint64(number), 'l'))
	w := new(flow)
	var before []int
	for range 8 + rng.IntN(5) {
		var now []int
		for range 6 + rng.IntN(14) {
			t := task{estimate: min(12, max(0.5, 2.5*math.Exp(0.7*rng.NormFloat64())))}
			t.estimate = math.Round(t.estimate*100) / 100
			t.took = t.estimate * (1 + by*(2*rng.Float64()-1))
			t.command = []string{"/bin/sleep", strconv.FormatFloat(t.took, 'f', 3, 64)}
			for range min(2, len(before)) {
				if p := before[rng.IntN(len(before))]; !slices.Contains(t.parents, p) {
					t.parents = append(t.parents, p)
				}
			}
			now = append(now, len(w.tasks))
			w.tasks = append(w.tasks, t)
		}
		before = now
	}
	return w.finish()
}

// rounds is the number of iterations of a computing task, which takes about a second on one cpu of this machine.
const rounds = 400_000

// computing returns a workflow of forty tasks that each compute for as long as estimated if nothing else does.
func computing() *flow {
	loop := fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); done", rounds)
	alone := math.Inf(1) // the least of several, because other programs run now and then
	for range 5 {
		began := time.Now()
		_ = exec.Command("/bin/sh", "-c", loop).Run()
		alone = min(alone, math.Round(time.Since(began).Seconds()*100)/100)
	}
	w := new(flow)
	for range 40 {
		w.tasks = append(w.tasks, task{estimate: alone, command: []string{"/bin/sh", "-c", loop}})
	}
	return w.finish()
}

// finish sets the children and the ranks.
func (w *flow) finish() *flow {
	for i, t := range w.tasks {
		for _, p := range t.parents {
			w.tasks[p].children = append(w.tasks[p].children, i)
		}
	}
	for i := len(w.tasks) - 1; i >= 0; i-- {
		t := &w.tasks[i]
		for _, c := range t.children {
			t.rank = max(t.rank, w.tasks[c].rank)
		}
		t.rank += t.estimate
	}
	return w
}

// write writes the workflow as WfFormat.
func (w *flow) write(file string) error {
	type object = map[string]any
	name := func(all []int) []string {
		ids := []string{}
		for _, i := range all {
			ids = append(ids, fmt.Sprintf("t%d", i))
		}
		return ids
	}
	var specified, executed []object
	for i, t := range w.tasks {
		id := fmt.Sprintf("t%d", i)
		specified = append(specified, object{"id": id, "name": "task", "parents": name(t.parents),
			"children": name(t.children), "x-corral": object{"estimate_s": t.estimate}})
		executed = append(executed, object{"id": id, "runtimeInSeconds": t.estimate,
			"command": object{"program": t.command[0], "arguments": t.command[1:]}})
	}
	text, err := json.Marshal(object{"name": "live", "schemaVersion": "1.5", "workflow": object{
		"specification": object{"tasks": specified},
		"execution":     object{"makespanInSeconds": 0, "executedAt": "2026-11-29T00:00:00Z", "tasks": executed}}})
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// control runs the tasks without Corral: each cpu of a pilot takes the ready task of the highest rank, from the time on
// at which the plan has the pilot's workers. It returns when the last task has ended.
func (w *flow) control(ctx context.Context, pilots []plan.Pilot) time.Duration {
	began := time.Now()
	missing, left := make([]int, len(w.tasks)), len(w.tasks)
	var ready []int
	for i, t := range w.tasks {
		if missing[i] = len(t.parents); missing[i] == 0 {
			ready = append(ready, i)
		}
	}
	free, events := 0, make(chan int) // a task that has ended, or -1 for a cpu that has come
	for _, p := range plan.Hedged(pilots) {
		for range p.HeldCPUs() {
			time.AfterFunc(time.Duration(p.Ready), func() { events <- -1 })
		}
	}
	for left > 0 {
		var i int
		select {
		case <-ctx.Done():
			return time.Since(began)
		case i = <-events:
		}
		if free++; i >= 0 {
			left--
			for _, c := range w.tasks[i].children {
				if missing[c]--; missing[c] == 0 {
					ready = append(ready, c)
				}
			}
		}
		slices.SortStableFunc(ready, func(a, b int) int { return cmp.Compare(w.tasks[b].rank, w.tasks[a].rank) })
		for ; free > 0 && len(ready) > 0; ready = ready[1:] {
			next := ready[0]
			free--
			go func() {
				c := w.tasks[next].command
				_ = exec.CommandContext(ctx, c[0], c[1:]...).Run()
				events <- next
			}()
		}
	}
	return time.Since(began)
}

// busy occupies every cpu of this machine until the returned function is called.
func busy(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	for range runtime.NumCPU() {
		go func() { _ = exec.CommandContext(ctx, "/bin/sh", "-c", "while :; do :; done").Run() }()
	}
	return stop
}
