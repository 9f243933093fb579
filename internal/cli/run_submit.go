package cli

// submit runs a command, or an array of them, without a workflow file. The client creates the workflow; the result is a
// run like any other, with the same verbs. Unlike run, submit behaves as users expect from such a command: tasks run in
// the current folder and are not repeated when they fail, and the command returns at once.

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/api"
	"github.com/corral-pilot/corral/internal/cli/progress"
	"github.com/corral-pilot/corral/internal/kit/input"
	"github.com/corral-pilot/corral/workflow"
	"github.com/corral-pilot/corral/workflow/formats/array"
)

func (v runVerbs) submitCommand() *cli.Command {
	read := v.newSubmission
	return &cli.Command{
		Name: "submit", Category: workflows,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "array", Usage: "a task for each of `NUMBERS`, such as 1-1000, 0-100:10 or 3,7-9; " +
				"with --each-line, for these lines only"},
			&cli.StringFlag{Name: "each-line", Usage: "a task for each line of `FILE`, numbered from 1; -: of stdin"},
			&cli.StringFlag{Name: "name", Usage: "call it `NAME` (default: the program's name)"},
			&cli.StringSliceFlag{Name: "env", Usage: "set `K=V` in the tasks' environment; may be repeated",
				Action: func(_ *cli.Context, pairs []string) error {
					_, err := parseLabels("--env", pairs)
					return err
				}},
			&cli.StringFlag{Name: "cwd", Usage: "run in `DIR` of the workers' machines (default: the current folder)"},
			&cli.BoolFlag{Name: "own-dir", Usage: "run each task in a new folder of its own, below that of the run"},
			&cli.StringSliceFlag{Name: "in", Usage: "copy `FILE` to each task's own folder; may be repeated"},
			&cli.StringSliceFlag{Name: "out", Usage: "keep `FILE` of the task's own folder; may be repeated"},
			&cli.StringFlag{Name: "stdin", Usage: "read the tasks' stdin from `FILE`"},
			&cli.StringFlag{Name: "stdout", Usage: "write stdout to `FILE` (default: keep it for `corral runs log`)"},
			&cli.StringFlag{Name: "stderr", Usage: "write stderr to `FILE`"},
			&cli.IntFlag{Name: "cpus", Value: 1, Usage: "`N` cpus for each task"},
			&cli.StringFlag{Name: "memory", Usage: "`SIZE` of memory for each task, such as 4GiB"},
			&cli.IntFlag{Name: "gpus", Usage: "`N` gpus for each task"},
			durationFlag("time", 0, "a task takes `D` at most: only workers that stay as long get it, "+
				"and it is killed after that"),
			clusterFlag(), waitFlag("every task is over; the exit code tells"),
			progressFlag("wait, and "),
			retriesFlag(0, ""), clusteringFlag(""),
		}, runFlags(), []cli.Flag{labelFlag(), keyFlag(), timeoutFlag()}),
		Action: v.orDryRun(read, creating(read, createRun,
			v.beginSubmission)),
	}
}

// beginSubmission returns at once, unless --wait or --progress is given. With -q it prints the id first.
func (v runVerbs) beginSubmission(c *cli.Context, cl *api.Client, r corral.Run) error {
	if !c.Bool("wait") && !c.IsSet("progress") {
		v.say("run %d has %d task(s); follow it with `corral runs wait %d`", r.ID, r.Tasks.Total, r.ID)
		v.warnOfLack(r, v.quiet)
		return runTable.show(v.printer, r)
	}
	view := progress.New(io.Discard, progress.Look{})
	if c.IsSet("progress") {
		view = v.view(c)
	}
	v.warnOfLack(r, !c.IsSet("progress") || !v.showsReasons(c))
	r, err := v.followNew(c, cl, r, view)
	return v.showEnd(r, err)
}

// newSubmission creates the request for a run of the tasks that the command line describes.
func (v runVerbs) newSubmission(c *cli.Context) (api.NewRun, error) {
	n, err := newRunOptions(c)
	if err != nil {
		return n, err
	}
	command, err := commandOf(c)
	if err != nil {
		return n, err
	}
	elements, err := v.elements(c)
	if err != nil {
		return n, err
	}
	if err := cmp.Or(checkRoom(c, command, elements), checkStdin(command, elements)); err != nil {
		return n, err
	}
	w, err := command.Workflow(elements)
	if err != nil {
		return n, err
	}
	n.WorkflowName = w.Name
	return n, attachWorkflow(c, &n, w)
}

// sampleSize is the number of tasks of a large array that are used to estimate the length of the request.
const sampleSize = 1000

// checkRoom refuses an array that would exceed the maximum length of a request before the request is created, because
// creating it takes a while. It counts entries unescaped, although some characters take more space when escaped: so it
// refuses hardly any array that fits, and leaves only few arrays for the client to refuse.
func checkRoom(c *cli.Context, command array.Command, elements []array.Element) error {
	if len(elements) <= sampleSize {
		return nil
	}
	entries, none := 0, ""
	some := make([]array.Element, sampleSize)
	for i := range some {
		some[i] = elements[i*len(elements)/sampleSize] // evenly spaced, because later numbers are longer
		if some[i].Entry != nil {
			some[i].Entry = &none
		}
	}
	for _, e := range elements {
		if e.Entry != nil {
			entries += len(*e.Entry)
		}
	}
	w, err := command.Workflow(some)
	if err != nil {
		return err
	}
	var n api.NewRun
	if err := attachWorkflow(c, &n, w); err != nil {
		return err
	}
	size := len(n.Workflow)*len(elements)/sampleSize + entries
	if size <= api.MaxRunBody {
		return nil
	}
	flag := "--array"
	if c.IsSet("each-line") {
		flag = "--each-line"
	}
	return corral.ErrorAt(corral.Invalid, flag, "%d tasks make a request of about %d MiB, over the limit of %s: "+
		"submit them in parts of about %d tasks, with --array", len(elements), size>>20,
		input.Size(api.MaxRunBody), roundDown(api.MaxRunBody/(size/len(elements)+1)))
}

// roundDown rounds a number down to two significant digits.
func roundDown(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return n / unit * unit
}

// commandOf reads the command of each task.
func commandOf(c *cli.Context) (array.Command, error) {
	from, err := os.Getwd()
	if err != nil {
		return array.Command{}, corral.Errorf(corral.Failed, "the current folder: %w", err)
	}
	env, _ := parseLabels("", c.StringSlice("env")) // the flag has checked them
	a := array.Command{
		Name: c.String("name"), Argv: c.Args().Slice(), Env: env, From: from,
		Inputs: c.StringSlice("in"), Outputs: c.StringSlice("out"), Time: c.Duration("time"),
		Streams:   workflow.Streams{Stdin: c.String("stdin"), Stdout: c.String("stdout"), Stderr: c.String("stderr")},
		Resources: corral.Resources{CPUs: c.Int("cpus"), GPUs: c.Int("gpus")},
	}
	if a.MemoryMiB, err = parseMiB("--memory", c.String("memory")); err != nil {
		return a, err
	}
	switch {
	case a.CPUs < 1:
		return a, corral.ErrorAt(corral.Invalid, "--cpus", "%d is not a number of cpus, 1 or more", a.CPUs)
	case a.GPUs < 0:
		return a, corral.ErrorAt(corral.Invalid, "--gpus", "%d is negative", a.GPUs)
	case c.IsSet("time") && a.Time <= 0:
		return a, corral.ErrorAt(corral.Invalid, "--time", "%s is not a positive duration", a.Time)
	case c.Bool("own-dir") && c.IsSet("cwd"):
		return a, corral.ErrorAt(corral.Invalid, "--own-dir", "cannot be used with --cwd")
	}
	if own := c.Bool("own-dir") || len(a.Inputs)+len(a.Outputs) > 0; !own || c.IsSet("cwd") {
		a.Dir = filepath.Join(from, c.String("cwd"))
		if filepath.IsAbs(c.String("cwd")) {
			a.Dir = filepath.Clean(c.String("cwd"))
		}
	}
	return a, nil
}

// checkStdin refuses a stdin in a given folder that is not a regular file, as far as the file is visible on this
// machine, because a task that opens a pipe may wait forever. For tasks in folders of their own the file is among the
// inputs, which corrald checks.
func checkStdin(command array.Command, elements []array.Element) error {
	if command.Dir == "" || command.Stdin == "" || command.Stdin == os.DevNull {
		return nil
	}
	pattern := command.Stdin
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(command.Dir, pattern)
	}
	for _, e := range elements[:min(len(elements), sampleSize)] {
		file := strings.ReplaceAll(pattern, "%{TASK}", strconv.Itoa(e.Number))
		info, err := os.Stat(file)
		if err != nil {
			continue // the file may be visible to workers
		}
		var wrong *input.NotRegularError
		if errors.As(input.Regular(file, info), &wrong) {
			return corral.ErrorAt(corral.Invalid, "--stdin", "%s: %w", file, wrong)
		}
		if file == pattern {
			break // all tasks share the file
		}
	}
	return nil
}

// elements returns the tasks: a single task, or the tasks given by --array and --each-line.
func (v runVerbs) elements(c *cli.Context) ([]array.Element, error) {
	var numbers []int
	if c.IsSet("array") {
		var err error
		if numbers, err = array.ParseNumbers(c.String("array")); err != nil {
			return nil, err
		}
	}
	switch file := c.String("each-line"); {
	case c.IsSet("each-line"):
		text, err := v.readLines(c.Context, file)
		if err != nil {
			return nil, err
		}
		return array.Lines(file, string(text), numbers)
	case numbers == nil:
		numbers = []int{1}
	}
	return array.Numbers(numbers), nil
}

// maxLines is the maximum length of the file of --each-line in bytes, because the request that contains its lines
// cannot be longer.
const maxLines = api.MaxRunBody

// readLines reads the file of --each-line, which may be a pipe, such as a shell's <(COMMAND).
func (v runVerbs) readLines(ctx context.Context, file string) (text []byte, err error) {
	info, missing := os.Stat(file)
	if file == "-" || missing == nil && info.Mode()&os.ModeNamedPipe != 0 {
		text, err = readAll(ctx, file, v.in, maxLines)
	} else {
		text, err = input.ReadFile(file, maxLines)
	}
	if err != nil {
		return nil, corral.ErrorAt(corral.Invalid, "--each-line", "%w", err)
	}
	return trimBOM(text), nil
}

// retriesFlag sets the number of retries of a failed task.
func retriesFlag(n int, more string) cli.Flag {
	return &cli.IntFlag{Name: "retries", Value: n,
		Usage: "run a task that fails up to `N` times more, unless the task says otherwise" + more}
}

// clusteringFlag selects how tasks are grouped into jobs.
func clusteringFlag(more string) cli.Flag {
	return &cli.StringFlag{Name: "clustering", Value: "none",
		Usage: "`HOW` tasks become jobs: none (one each), horizontal=N (those of a level in at most N), " +
			"runtime=D (those of a level in jobs of about D), label (those of a label), vertical (chains), " +
			"or auto (the shortest predicted makespan on the present workers)" + more}
}

// runFlags returns the flags that all commands that create runs share.
func runFlags() []cli.Flag {
	return []cli.Flag{
		dryRunFlag(),
		&cli.StringFlag{Name: "retry-unless",
			Usage: "do not run a task again that ends with one of these exit `STATUSES`, as in 3,64, unless " +
				"the task says otherwise"},
		&cli.IntFlag{Name: "crash-limit", Value: 5,
			Usage: "fail a task that ran on `N` workers when they were lost; 0: never"},
		&cli.IntFlag{Name: "priority", Usage: "add `N` to the priorities of its tasks: the ready task with the " +
			"largest in a cluster starts first"},
		secondsFlag("stall", 5*time.Minute,
			"end with exit code 3 when no worker could take the ready tasks for `D`"),
		durationFlag("default-runtime", time.Minute,
			"assume `D` for a task without an estimate; with --auto, the first measurements of a kind replace "+
				"the default"),
		&cli.BoolFlag{Name: "keep-tasks",
			Usage: "keep the directory of every attempt, also of tasks that left nothing but their outputs"},
		&cli.StringFlag{Name: "trace", Usage: "watch what tasks use, `HOW`: processes (their starts and ends), or io " +
			"(also what they read and write, which slows that down); see `corral profile trace`"},
		&cli.BoolFlag{Name: "stream",
			Usage: "on a cluster of kind condor: run tasks in worker jobs, instead of an HTCondor job for each"},
		&cli.StringFlag{Name: "dir", Usage: "run directory `DIR` on corrald's host; must not exist or be empty " +
			"(default: below the XDG data directory)"},
	}
}
