// Command schedules runs workflows whose tasks sleep on workers of one cpu, clustered and not, and puts their makespans
// beside the list schedule, which knows of no overhead: so what is measured is what Corral adds.
//
//	go run ./bench/schedules                       # about 40 minutes
//	go run ./bench/schedules -name LIGO -workers 4 # one of them
//	go run ./bench/schedules -sim -clustering auto # simulated alone, in seconds
//	go run ./bench/schedules -slurm 4              # a job of Slurm for each task, beside pilots there: 10 minutes
//	go run ./bench/schedules -thesis               # chapter 2 of the thesis, simulated: a quarter of a minute
//
// The workflows are those of 200 tasks of Pegasus's workflow generator, as far as -data has them, and three of the
// thesis (Juve 2012, ch. 2), made from its tables of profiles: Montage of 206 tasks, Broadband of 768, Epigenome of
// 2,057. Their runtimes are scaled so that work ÷ workers is 20 s, and no task takes less than 20 ms. Those of 1,000
// tasks, and Montage of 6,062, are simulated only; what the simulator says of the others can be compared with them.
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

// A bench says what to measure and where.
type bench struct {
	data    string // a directory with workflows of the generator
	dir     string // parent of the temporary directory
	bin     string // where corrald and pilot are
	rules   []string
	workers []int
	share   time.Duration // work ÷ workers
	named   string        // part of the names of what is measured
	simOnly bool
	slurm   int  // nodes of a Slurm on which the thesis's workflows are run job by job; 0: none
	thesis  bool // simulate chapter 2
	tasks   int  // of its CyberShake
	draws   int  // of its Epigenome

	stdout, stderr io.Writer
}

func main() { rig.Main(execute) }

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	b, err := parse(args, stdout, stderr)
	if err != nil {
		return rig.Misuse // flag has said why
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
	f.StringVar(&b.dir, "dir", os.TempDir(), "`directory` to work below")
	f.StringVar(&b.bin, "bin", "bin", "`directory` with corrald and pilot")
	f.DurationVar(&b.share, "share", 20*time.Second, "work ÷ workers")
	f.StringVar(&b.named, "name", "", "only workflows whose `NAME` has this in it")
	f.BoolVar(&b.simOnly, "sim", false, "simulate only")
	f.IntVar(&b.slurm, "slurm", 0, "the thesis's workflows alone, job by job and on pilots, at a Slurm of `N` nodes")
	f.BoolVar(&b.thesis, "thesis", false, "simulate the comparisons of the thesis's chapter 2")
	f.IntVar(&b.tasks, "tasks", shakeTasks/100, "of its CyberShake, `N` tasks of 840,000, on as many cores less")
	f.IntVar(&b.draws, "draws", 30, "of its Epigenome in blocks, `N` of other seeds")
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
		err = errors.New("there are no arguments beside flags, and a share and numbers are positive")
	}
	if err != nil {
		fmt.Fprintln(stderr, "schedules: "+err.Error())
	}
	return b, err
}

// generated names the generator's workflows, without the number of their tasks.
var generated = []string{"MONTAGE", "GENOME", "CYBERSHAKE", "LIGO", "SIPHT"}

// read reads the generator's workflows of so many tasks; those that are not there are left out, and said.
func (b bench) read(ctx context.Context, tasks int) (all []*workflow.Workflow, err error) {
	for _, name := range generated {
		file := filepath.Join(b.data, fmt.Sprintf("%s.n.%d.0.dax.gz", name, tasks))
		wf, _, err := formats.ReadFile(ctx, file, workflow.Options{})
		if err != nil {
			if _, missing := os.Stat(file); errors.Is(missing, os.ErrNotExist) {
				fmt.Fprintln(b.stderr, "schedules: not there:", file)
				continue
			}
			return nil, err
		}
		wf.Name = fmt.Sprintf("%s of %d", name, tasks)
		all = append(all, wf)
	}
	return all, nil
}

// measure measures everything.
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

// wanted are those with a name that was asked for.
func (b bench) wanted(all []*workflow.Workflow) []*workflow.Workflow {
	return slices.DeleteFunc(all, func(wf *workflow.Workflow) bool { return !strings.Contains(wf.Name, b.named) })
}

// on runs workflows on so many workers, each in a cluster that has run nothing but those before it.
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

// each does something with each workflow and rule.
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

// simulated adds a case that is simulated only.
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
