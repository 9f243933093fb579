// Package demo is the main job end to end: a private corrald, a plan, pilots, a workflow on real
// input, the check of its result, and the proof that nothing is left behind.
//
// Everything happens below one temporary directory and through the same API that everybody uses.
package demo

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/examples/lambda"
	"github.com/corral-pilot/corral/internal/follow"
	"github.com/corral-pilot/corral/internal/personal"
	"github.com/corral-pilot/corral/internal/xdg"
)

// Config says how to show the demo.
type Config struct {
	Out      io.Writer
	Terminal bool // Out is a terminal: progress may be drawn
	Keep     bool // leave the run directory for looking at
}

// A Demo is one run of it. Its methods are its steps.
type Demo struct {
	cfg     Config
	dir     string
	corrald personal.Corrald
	cl      *api.Client
	site    corral.Site
	plan    plan
	glidein corral.Glidein
	run     corral.Run
	began   time.Time
}

// walltime of the demo's pilots, and the longest that anything in it may take.
const (
	walltime = 10 * time.Minute
	patience = 2 * time.Minute
)

// Run plays the demo. Whatever happens, what it started is taken down again.
func Run(ctx context.Context, cfg Config) (err error) {
	dir, err := os.MkdirTemp("", "corral-demo-")
	if err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	d := &Demo{cfg: cfg, dir: dir, began: time.Now(), corrald: personal.Corrald{Layout: xdg.Below(dir)}}
	d.say("Corral demo, all of it below %s", dir)
	defer func() {
		if err != nil {
			d.abandon(err)
		}
	}()
	for _, step := range []func(context.Context) error{d.up, d.decide, d.provision, d.execute, d.check, d.down, d.nothingLeft} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	d.say("\nDone in %s.", time.Since(d.began).Round(100*time.Millisecond))
	return nil
}

func (d *Demo) say(format string, args ...any) { fmt.Fprintf(d.cfg.Out, format+"\n", args...) }

func (d *Demo) step(title string) { d.say("\n── %s", title) }

// up starts the private corrald and unpacks the example.
func (d *Demo) up(ctx context.Context) error {
	d.step("a private corrald, and the site it sets up")
	if err := unpack(lambda.FS, d.path("lambda")); err != nil {
		return fmt.Errorf("unpacking the example: %w", err)
	}
	if _, err := d.corrald.Start(ctx); err != nil {
		return err
	}
	var err error
	if d.cl, err = d.corrald.Client(); err != nil {
		return err
	}
	if d.site, err = personal.SetUp(ctx, d.cl); err != nil {
		return err
	}
	d.say("corrald is process %d; site %s is %s with worker package %s", d.corrald.PID(), d.site.Name, d.site.State, d.site.Package)
	return nil
}

func (d *Demo) path(name string) string { return filepath.Join(d.dir, name) }

func unpack(files fs.FS, dir string) error { return os.CopyFS(dir, files) }

// decide chooses how many pilots to ask for and predicts what they will do.
func (d *Demo) decide(context.Context) error {
	d.step("the plan")
	var err error
	d.plan, err = choose(filepath.Join(d.dir, "lambda", lambda.WorkflowFile), runtime.NumCPU())
	if err != nil {
		return err
	}
	d.say("%s", d.plan)
	return nil
}

// provision asks for the pilots and waits for their workers.
func (d *Demo) provision(ctx context.Context) (err error) {
	d.step("pilots")
	d.glidein, err = d.cl.CreateGlidein(ctx, api.NewGlidein{
		Site: personal.Site, Cluster: personal.Cluster, Hosts: d.plan.pilots, CPUs: 1,
		Walltime: corral.Seconds(walltime), Idle: corral.Seconds(patience),
	}, "")
	if err != nil {
		return err
	}
	if d.glidein, err = d.cl.WaitGlidein(ctx, d.glidein.ID, api.UntilWorkers, patience); err != nil {
		return err
	}
	workers, err := d.cl.Workers(ctx, personal.Cluster)
	if err != nil {
		return err
	}
	for _, w := range workers {
		d.say("worker %s: process %d on %s, %d cpu, %d MiB, registered %s after the request",
			w.ID, w.PID, w.Host, w.CPUs, w.MemoryMiB, w.RegisteredAt.Sub(d.glidein.CreatedAt).Round(time.Millisecond))
	}
	return nil
}

// execute runs the workflow and follows it.
func (d *Demo) execute(ctx context.Context) error {
	d.step("the workflow")
	file := filepath.Join(d.dir, "lambda", lambda.WorkflowFile)
	document, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the workflow: %w", err)
	}
	d.run, err = d.cl.CreateRun(ctx, api.NewRun{
		Cluster: personal.Cluster, Workflow: document, WorkflowName: lambda.WorkflowFile, SourceDir: filepath.Dir(file),
	}, "")
	if err != nil {
		return err
	}
	d.run, err = follow.Run(ctx, d.cl, d.run, follow.New(d.cfg.Out, d.cfg.Terminal, false))
	if err != nil {
		return err
	}
	if d.run.State != corral.RunSucceeded {
		return corral.Errorf(corral.Failed, "the run is %s: %s", d.run.State, d.run.Reason)
	}
	d.outcome(*d.run.Report)
	return nil
}

// outcome puts what happened beside what the plan said.
func (d *Demo) outcome(r corral.RunReport) {
	s := func(v corral.Seconds) string { return time.Duration(v).Round(10 * time.Millisecond).String() }
	d.say("%d tasks, %s of task time on %d cpus; parallelism %.2f", d.run.Tasks.Total, s(r.TaskTime), r.CPUs, r.Parallelism)
	d.say("makespan: predicted %s, measured %s", d.plan.makespan.Round(10*time.Millisecond), s(r.Makespan))
	d.say("  %.2f × the lower bound max(critical path, work ÷ cpus) = %s", r.OverBound, s(r.LowerBound))
	d.say("  %.2f × the list schedule of the measured task times = %s", r.OverList, s(r.ListSchedule))
}

// check compares the workflow's report with the one that a single pass over the genome gives.
func (d *Demo) check(context.Context) error {
	d.step("the result")
	got, err := os.ReadFile(filepath.Join(d.run.Dir, "data", lambda.ReportFile))
	if err != nil {
		return fmt.Errorf("reading the result: %w", err)
	}
	want, err := lambda.Expected()
	if err != nil {
		return fmt.Errorf("computing the result in a single pass: %w", err)
	}
	d.say("%s", got)
	if string(got) != want {
		return corral.Errorf(corral.Failed, "the workflow's report differs from that of a single pass over the genome:\n%s", want)
	}
	d.say("The report equals, byte by byte, the one computed in a single pass over the genome.")
	return nil
}
