package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/bench/rig"
	"github.com/corral-pilot/corral/internal/service/personal"
	"github.com/corral-pilot/corral/workflow"
)

// look is the interval for polling the queue, which delays each task by at most that.
const look = 500 * time.Millisecond

// eachAJob runs a workflow with a job of Slurm for each task, submitted when its predecessors have ended, like a user's
// script, and returns the duration.
func eachAJob(ctx context.Context, a asleep) (time.Duration, error) {
	began, tick := time.Now(), time.NewTicker(look)
	defer tick.Stop()
	q := watched{ctx: ctx, asleep: a, jobs: map[string]int{}, missing: make([]int, a.wf.Graph.Len())}
	for i := range q.missing {
		if q.missing[i] = len(a.wf.Graph.Parents(i)); q.missing[i] == 0 {
			q.submit(i)
		}
	}
	for q.err == nil && len(q.jobs) > 0 {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-tick.C:
			q.look()
		}
	}
	return time.Since(began), q.err
}

// A watched contains the tasks of a workflow that are jobs of Slurm.
type watched struct {
	asleep
	ctx     context.Context
	jobs    map[string]int // :: id → task
	missing []int          // :: task → number of predecessors that have not ended
	err     error
}

// submit submits a task as a job.
func (q *watched) submit(i int) {
	sleep := strconv.FormatFloat(q.times[i].Seconds(), 'f', 3, 64)
	id, err := exec.CommandContext(q.ctx, "sbatch", "--parsable", "-n1", "-o/dev/null", "--wrap=sleep "+sleep).Output()
	q.jobs[strings.TrimSpace(string(id))] = i
	q.err = errors.Join(q.err, err)
}

// look submits the tasks that may begin because jobs have left the queue.
func (q *watched) look() {
	out, err := exec.CommandContext(q.ctx, "squeue", "-h", "-o%A").Output()
	q.err = errors.Join(q.err, err)
	there := map[string]bool{}
	for _, id := range strings.Fields(string(out)) {
		there[id] = true
	}
	for id, i := range maps.Clone(q.jobs) {
		if there[id] {
			continue
		}
		delete(q.jobs, id)
		for _, c := range q.wf.Graph.Children(i) {
			if q.missing[c]--; q.missing[c] == 0 {
				q.submit(int(c))
			}
		}
	}
}

// onPilots runs a workflow on pilots at the same Slurm, and returns the duration from the request for pilots.
func onPilots(ctx context.Context, dir string, a asleep, nodes int) (took time.Duration, err error) {
	s, err := startCorrald(ctx, dir)
	defer func() { err = errors.Join(err, s.End()) }()
	if err != nil {
		return 0, err
	}
	const site = "slurm"
	if _, err := s.Client.CreateSite(ctx, api.NewSite{Name: site, Contact: "local:", Batch: "slurm"}, ""); err != nil {
		return 0, err
	}
	if _, err := s.Client.WaitSite(ctx, site, string(corral.SiteReady), patience); err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := s.Client.CreateGlidein(ctx, api.NewGlidein{Site: site,
		Shape: corral.Shape{Hosts: nodes, CPUs: 1, Walltime: corral.Seconds(walltime)}}, ""); err != nil {
		return 0, err
	}
	_, err = s.run(ctx, a, "none")
	return time.Since(began), err
}

// thesisReductions are the reductions, in percent, of the runtimes of the thesis's workflows on glideins compared with
// jobs of a grid (Juve 2012, §2.8).
var thesisReductions = map[string]string{"Montage": "45", "Broadband": "40", "Epigenome": "32"}

// beside measures the thesis's workflows as jobs of a Slurm, and on pilots there.
func (b bench) beside(ctx context.Context) error {
	made, err := ofTheThesis()
	if err != nil {
		return err
	}
	if err := personal.UsePrograms(b.bin); err != nil {
		return err
	}
	r := &report{out: b.stdout}
	r.print("| workflow | tasks | nodes | a job each s | on pilots s | less %% | thesis %% |\n")
	r.print("| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, wf := range b.wanted(made) {
		alone, pilots, err := b.both(ctx, wf)
		if err != nil {
			return err
		}
		r.print("| %s | %d | %d | %.1f | %.1f | %.0f | %s |\n", wf.Name, len(wf.Tasks), b.slurm, alone.Seconds(),
			pilots.Seconds(), 100*(1-pilots.Seconds()/alone.Seconds()), thesisReductions[strings.Fields(wf.Name)[0]])
	}
	return r.err
}

// both measures one workflow in both ways, on a separate Slurm.
func (b bench) both(ctx context.Context, wf *workflow.Workflow) (alone, pilots time.Duration, err error) {
	dir, err := os.MkdirTemp("/tmp", "slurm") // sockets need short names
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	s, err := rig.StartSlurm(ctx, dir, b.slurm, 1)
	defer func() { err = errors.Join(err, s.End()) }()
	if err != nil {
		return 0, 0, err
	}
	a := asleepFor(wf, b.share*time.Duration(b.slurm))
	if alone, err = eachAJob(ctx, a); err == nil {
		pilots, err = onPilots(ctx, filepath.Join(dir, "c"), a, b.slurm)
	}
	return alone, pilots, err
}
