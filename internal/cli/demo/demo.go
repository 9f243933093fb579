// Package demo demonstrates Corral's main use end to end: a private corrald, a plan, pilots, a workflow on real input,
// the check of its result, and the proof that nothing is left behind.
//
// Everything happens below one temporary directory and through the public API. The demo measures the values it prints;
// predictions are marked as such and compared with the outcome.
//
// Run lists the steps in order. Each step consists of a few calls of the client, and prints through the stage
// (stage.go), which handles terminals. A step that fails ends the demo, and abandon takes down everything that was
// started.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/examples/lambda"
	"github.com/corral-pilot/corral/internal/cli/progress"
	"github.com/corral-pilot/corral/internal/kit/xdg"
	"github.com/corral-pilot/corral/internal/service/personal"
)

// Config configures the demo.
type Config struct {
	Out   io.Writer
	Look  progress.Look // describes Out
	Keep  bool          // keep the run directory for inspection
	Kind  corral.ClusterKind
	RunAs string // the user under which root's corrald runs; "": root
	// Packages writes the archives of HTCondor's packages, readable for everyone, into dir. It reports its steps to
	// say.
	Packages func(ctx context.Context, dir string, say func(string)) error
}

// A demo is one execution. Its methods are its steps.
type demo struct {
	out     stage
	cfg     Config
	dir     string
	corrald personal.Corrald
	cl      *api.Client
	site    corral.Site
	cluster string // the cluster that the pilots join
	plan    planned
	run     corral.Run
}

// patience is the maximum duration of any wait.
const patience = 2 * time.Minute

// Run runs the demo and returns the run of its workflow. In any case Run takes down everything that it started; the
// demo's files are kept only if it failed, or with Config.Keep.
func Run(ctx context.Context, cfg Config) (corral.Run, error) {
	dir, err := os.MkdirTemp("", "corral-demo-")
	if err != nil {
		return corral.Run{}, fmt.Errorf("making a temporary directory: %w", err)
	}
	d := &demo{out: newStage(cfg.Out, cfg.Look), cfg: cfg, dir: dir, cluster: personal.Cluster,
		corrald: personal.Corrald{Layout: xdg.Below(dir), RunAs: cfg.RunAs}}
	d.out.title("Corral: the k-mer spectrum of the lambda phage genome, on pilots", "all of it below "+dir)
	began := time.Now()
	steps := []func(context.Context) error{d.up, d.decide, d.provision, d.execute, d.check, d.down, d.nothingLeft}
	if cfg.Kind == corral.Condor {
		steps = slices.Insert(steps, 1, d.startPool)
		steps = slices.Insert(steps, 0, d.fetchPackages)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			d.abandon(ctx)
			return d.run, err
		}
	}
	d.out.title("Done in "+round(time.Since(began))+".", "")
	return d.run, nil
}

// up starts the private corrald and unpacks the example.
func (d *demo) up(ctx context.Context) error {
	d.out.doing("starting corrald, and the setup job of site " + personal.Site)
	began := time.Now()
	if err := d.unpackExample(); err != nil {
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
	d.out.say("site", "%s is %s, %s after the start of a private corrald", d.site.Name, d.site.State,
		round(time.Since(began)))
	d.out.more("its setup job installed %s", d.site.Package)
	if d.cfg.RunAs != "" {
		d.out.more("root's corrald, and all that it starts, runs as %s", d.cfg.RunAs)
	}
	return nil
}

// unpackExample writes the workflow and its input to a directory where corrald can read them under any user.
func (d *demo) unpackExample() error {
	dir := filepath.Dir(d.workflow())
	if err := errors.Join(os.CopyFS(dir, lambda.FS), os.Chmod(d.dir, 0o711)); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, f fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if f.IsDir() {
			mode = 0o755
		}
		return os.Chmod(path, mode)
	})
}

// execute runs the workflow and follows its progress.
func (d *demo) execute(ctx context.Context) error {
	document, err := os.ReadFile(d.workflow())
	if err != nil {
		return fmt.Errorf("reading the workflow: %w", err)
	}
	d.run, err = d.cl.CreateRun(ctx, api.NewRun{
		Cluster: d.cluster, Workflow: document, WorkflowName: lambda.WorkflowFile,
		SourceDir: filepath.Dir(d.workflow()),
		Options:   corral.RunOptions{Clustering: d.plan.Clustering.String()},
		Labels:    map[string]string{"plan": strconv.FormatInt(int64(d.plan.row.ID), 10)},
	}, "")
	if err != nil {
		return err
	}
	if d.run, err = progress.Run(ctx, d.cl, d.run, d.out.view(d.cl, time.Duration(d.plan.Makespan))); err != nil {
		return err
	}
	if d.run.State != corral.RunSucceeded {
		return corral.Errorf(corral.Failed, "the run is %s: %s", d.run.State, d.run.Reason)
	}
	tasks, err := d.cl.RunTasks(ctx, d.run.ID)
	if err != nil {
		return err
	}
	d.outcome(tasks)
	return nil
}

// outcome shows the activity of the workers, and compares the actual values with the plan.
func (d *demo) outcome(tasks []api.TaskStatus) {
	r := *d.run.Report
	s := func(v corral.Seconds) string { return round(time.Duration(v)) }
	d.out.say("workflow", "%d of %d tasks done, %s", d.run.Tasks.Done, d.run.Tasks.Total, d.plan.compared(d.run))
	d.out.more("the run alone took %s; task time %s, %.2f × the estimates; parallelism %.2f on %s", s(r.Makespan),
		s(r.TaskTime), ratio(r.TaskTime, d.plan.work()), r.Parallelism, counted(r.CPUs, "cpu"))
	d.out.more("%.2f × the lower bound, %s = max(critical path, work ÷ cpus)", r.OverBound, s(r.LowerBound))
	d.out.more("%.2f × the list schedule of the measured times, %s", r.OverList, s(r.ListSchedule))
	chart := progress.Chart{Tasks: tasks, From: d.run.CreatedAt, To: d.run.EndedAt, Now: d.run.EndedAt}
	d.out.draw(chart.Draw(d.out.look, indent)...)
}

func ratio(took corral.Seconds, estimate time.Duration) float64 {
	return float64(took) / float64(max(estimate, 1))
}

// check compares the workflow's report with the report that a single pass over the genome produces. A demo that ran but
// computed a wrong result would fail here.
func (d *demo) check(context.Context) error {
	d.out.doing("computing the result again in a single pass")
	got, err := os.ReadFile(filepath.Join(d.run.Dir, "data", lambda.ReportFile))
	if err != nil {
		return fmt.Errorf("reading the result: %w", err)
	}
	want, err := lambda.Expected()
	if err != nil {
		return fmt.Errorf("computing the result in a single pass: %w", err)
	}
	if string(got) != want {
		return corral.Errorf(corral.Failed,
			"the workflow's report differs from that of a single pass over the genome:\n%s\nwant\n%s", got, want)
	}
	d.out.result(string(got))
	return nil
}

// abandon takes down everything that a failed or interrupted demo has started. It uses its own context, because the
// demo's context may have ended. The files of a failed demo are kept for inspection if corrald was started.
func (d *demo) abandon(ctx context.Context) {
	useless := ctx.Err() != nil || !d.corrald.Exists()
	d.out.doing("taking everything down")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err := d.takeDown(ctx)
	switch {
	case err != nil:
		d.out.say("left", "taking it down failed: %v", err)
		d.out.more("files are below %s; the log is %s", d.dir, d.corrald.Layout.Log())
	case useless && os.RemoveAll(d.dir) == nil:
		d.out.say("left", "nothing: everything was taken down, that folder is removed")
	default:
		d.out.say("left", "no process; files are below %s", d.dir)
		d.out.more("the log of corrald is %s", d.corrald.Layout.Log())
	}
}

// takeDown removes everything at the site and ends corrald, if corrald is running.
func (d *demo) takeDown(ctx context.Context) error {
	if !d.corrald.Answers(ctx) {
		return nil
	}
	cl, err := d.corrald.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	_, err = personal.TakeDown(ctx, cl, personal.Down{Force: true})
	return errors.Join(err, d.corrald.Stop(ctx))
}
