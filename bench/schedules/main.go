// Command schedules runs workflows whose tasks sleep on workers of one cpu, with and without clustering, and compares
// their makespans with the list schedule, which has no overhead: the difference is the overhead of Corral.
//
//	go run ./bench/schedules                       # about 40 minutes
//	go run ./bench/schedules -name LIGO -workers 4 # one of them
//	go run ./bench/schedules -sim -clustering auto # simulated alone, in seconds
//	go run ./bench/schedules -slurm 4              # a job of Slurm for each task, beside pilots there: 10 minutes
//	go run ./bench/schedules -thesis               # chapter 2 of the thesis, simulated: a quarter of a minute
//
// The workflows are those with 200 tasks from Pegasus's workflow generator, if -data contains them, and three from the
// thesis (Juve 2012, ch. 2), generated from its tables of profiles: Montage with 206 tasks, Broadband with 768,
// Epigenome with 2,057. Their runtimes are scaled such that work ÷ workers is 20 s, and no task takes less than 20 ms.
// Those with 1,000 tasks, and Montage with 6,062, are only simulated; for the others, the simulation can be compared
// with the measurement.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/bench/rig"
	"github.com/corral-pilot/corral/internal/service/personal"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/clustering"
	"github.com/corral-pilot/corral/workflow/formats"
)

// A bench specifies what to measure and where.
type bench struct {
	data    string // a directory with the generator's workflows
	dir     string // parent of the temporary directory
	bin     string // folder with corrald and pilot
	rules   []string
	workers []int
	share   time.Duration // work ÷ workers
	named   string        // part of the names of the measured workflows
	simOnly bool
	slurm   int  // nodes of a Slurm that runs the thesis's workflows job by job; 0: none
	thesis  bool // simulate chapter 2
	tasks   int  // of chapter 2's CyberShake
	draws   int  // of chapter 2's Epigenome

	stdout, stderr io.Writer
}

func main() { rig.Main(execute) }

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	b, err := parse(args, stdout, stderr)
	if err != nil {
		return rig.Misuse // flag has printed the reason
	}
	measure := b.measure
	switch {
	case b.thesis:
		measure = b.chapter2
	case b.slurm > 0:
		measure = b.beside
	}
	return rig.Code(stderr, "schedules", measure(ctx))
}

func parse(args []string, stdout, stderr io.Writer) (bench, error) {
	b := bench{stdout: stdout, stderr: stderr}
	f := flag.NewFlagSet("schedules", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&b.data, "data", "../shared/data/dax", "`directory` of the generator's workflows")
	f.StringVar(&b.dir, "dir", os.TempDir(), "parent `directory` of the working directory")
	f.StringVar(&b.bin, "bin", "bin", "`directory` with corrald and pilot")
	f.DurationVar(&b.share, "share", 20*time.Second, "work ÷ workers")
	f.StringVar(&b.named, "name", "", "only workflows whose name contains `NAME`")
	f.BoolVar(&b.simOnly, "sim", false, "simulate only")
	f.IntVar(&b.slurm, "slurm", 0, "only the thesis's workflows, job by job and on pilots, at a Slurm with `N` nodes")
	f.BoolVar(&b.thesis, "thesis", false, "simulate the comparisons of the thesis's chapter 2")
	f.IntVar(&b.tasks, "tasks", shakeTasks/100, "tasks of CyberShake: `N` of 840,000, on fewer cores in proportion")
	f.IntVar(&b.draws, "draws", 30, "draws of its Epigenome in blocks: `N` different seeds")
	rules := f.String("clustering", "none,runtime=200ms", "`RULES`, separated by commas")
	workers := f.String("workers", "2,4,8,16", "`NUMBERS` of workers, separated by commas")
	if err := f.Parse(args); err != nil {
		return b, err
	}
	b.rules = strings.Split(*rules, ",")
	var err error
	for _, rule := range b.rules {
		_, wrong := clustering.Parse(rule)
		err = errors.Join(err, wrong)
	}
	for word := range strings.SplitSeq(*workers, ",") {
		n, wrong := strconv.Atoi(word)
		if err = errors.Join(err, wrong); wrong == nil && n < 1 {
			err = errors.Join(err, fmt.Errorf("%d workers", n))
		}
		b.workers = append(b.workers, n)
	}
	if err == nil && (f.NArg() > 0 || b.share <= 0 || b.tasks < 1 || b.draws < 1) {
		err = errors.New("no arguments except flags are accepted, and the share and all numbers must be positive")
	}
	if err != nil {
		fmt.Fprintln(stderr, "schedules: "+err.Error())
	}
	return b, err
}

// generated lists the generator's workflows, without the number of tasks.
var generated = []string{"MONTAGE", "GENOME", "CYBERSHAKE", "LIGO", "SIPHT"}

// read reads the generator's workflows with the given number of tasks; missing ones are reported and omitted.
func (b bench) read(ctx context.Context, tasks int) (all []*workflow.Workflow, err error) {
	for _, name := range generated {
		file := filepath.Join(b.data, fmt.Sprintf("%s.n.%d.0.dax.gz", name, tasks))
		wf, _, err := formats.ReadFile(ctx, file, workflow.Options{})
		if err != nil {
			if _, missing := os.Stat(file); errors.Is(missing, os.ErrNotExist) {
				fmt.Fprintln(b.stderr, "schedules: missing:", file)
				continue
			}
			return nil, err
		}
		wf.Name = fmt.Sprintf("%s of %d", name, tasks)
		all = append(all, wf)
	}
	return all, nil
}

// measure makes all measurements.
func (b bench) measure(ctx context.Context) error {
	run, err := b.read(ctx, 200)
	if err != nil {
		return err
	}
	made, err := ofTheThesis()
	if err != nil {
		return err
	}
	large, err := b.read(ctx, 1000)
	if err != nil {
		return err
	}
	six, err := sixDegrees()
	if err != nil {
		return err
	}
	r := newReport(b.stdout)
	run, large = b.wanted(append(run, made...)), b.wanted(append(large, six))
	for _, n := range b.workers {
		if err := b.on(ctx, n, run, r); err != nil {
			return err
		}
	}
	for _, wf := range large {
		for _, n := range b.workers {
			for _, rule := range b.rules {
				if err := b.simulated(asleepFor(wf, b.share*time.Duration(n)), n, rule, r); err != nil {
					return err
				}
			}
		}
	}
	return r.end()
}

// wanted returns the workflows whose names were requested.
func (b bench) wanted(all []*workflow.Workflow) []*workflow.Workflow {
	return slices.DeleteFunc(all, func(wf *workflow.Workflow) bool { return !strings.Contains(wf.Name, b.named) })
}

// on runs workflows on the given number of workers, each in the same cluster after the previous ones.
func (b bench) on(ctx context.Context, workers int, all []*workflow.Workflow, r *report) (err error) {
	if b.simOnly {
		return b.each(all, workers, func(a asleep, rule string) error { return b.simulated(a, workers, rule, r) })
	}
	dir, err := os.MkdirTemp(b.dir, "corral-schedules-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := personal.UsePrograms(b.bin); err != nil {
		return err
	}
	s, err := newStand(ctx, dir, workers)
	defer func() { err = errors.Join(err, s.End()) }()
	if err != nil {
		return err
	}
	return b.each(all, workers, func(a asleep, rule string) error {
		o, err := s.run(ctx, a, rule)
		if err != nil {
			return err
		}
		c := newCase(a, workers, rule, o.how)
		c.took, c.own = o.took, o.own
		if done, err := clustering.Parse(o.how); err == nil {
			if c.simulated, err = simulate(a, done, workers); err != nil {
				return err
			}
		}
		return r.add(c)
	})
}

// each calls do for each workflow and rule.
func (b bench) each(all []*workflow.Workflow, workers int, do func(a asleep, rule string) error) error {
	for _, wf := range all {
		a := asleepFor(wf, b.share*time.Duration(workers))
		for _, rule := range b.rules {
			if err := do(a, rule); err != nil {
				return err
			}
		}
	}
	return nil
}

// simulated adds a case that is only simulated.
func (b bench) simulated(a asleep, workers int, rule string, r *report) error {
	how, err := clustering.Parse(rule)
	if err != nil {
		return err
	}
	if how.Kind == clustering.Auto {
		how = chosen(a, workers)
	}
	c := newCase(a, workers, rule, how.String())
	if c.simulated, err = simulate(a, how, workers); err != nil {
		return err
	}
	return r.add(c)
}
