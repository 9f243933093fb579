package slurm

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
	"github.com/corral-pilot/corral/internal/shim/slurm/step"
)

// Reasons why several options are not supported.
const (
	oneWorker = "a job runs within one worker"
	anyWorker = "a job runs on any worker that it fits on"
	noLayout  = "Corral does not bind tasks to sockets and cores"
	noPower   = "Corral does not set frequencies or power limits"
	noHold    = "a job starts as soon as a worker is free"
	notOthers = "a job belongs to the user who submits it"
)

// sbatchOptions lists every option of sbatch 22.05, in sbatch's own order. Options that would change the result for the
// user are refused. Options that are only accepted have no effect, which does no harm: they concern tasks on several
// nodes, sockets or cores, the measuring of jobs, mail, preferences among nodes, or sbatch's own messages.
var sbatchOptions = notation.Command[submission]{Name: "sbatch", Ordered: true, Options: []notation.Option[submission]{
	take("account|A=", text(func(s *submission) *string { return &s.spec.Account }), "SBATCH_ACCOUNT"),
	accept("acctg-freq="),
	take("array|a=", setArray, "SBATCH_ARRAY_INX"),
	refuse("batch=", anyWorker),
	take("begin|b=", setBegin),
	refuse("bb=", "burst buffers are not supported", "SBATCH_BURST_BUFFER"),
	refuse("bbf=", "burst buffers are not supported"),
	refuse("cluster-constraint=", "there is one cluster"),
	take("chdir|D=", text(func(s *submission) *string { return &s.order.Place.Directory })),
	take("cluster=", text(func(s *submission) *string { return &s.clusters })),
	take("clusters|M=", text(func(s *submission) *string { return &s.clusters }), "SBATCH_CLUSTERS", "SLURM_CLUSTERS"),
	take("comment=", text(func(s *submission) *string { return &s.spec.Comment })),
	refuse("container=", "the script can start its container itself", "SBATCH_CONTAINER"),
	refuse("context=", "a job has the security context of its worker"),
	accept("contiguous"),
	refuse("constraint|C=", anyWorker, "SBATCH_CONSTRAINT"),
	refuse("core-spec|S=", noLayout, "SBATCH_CORE_SPEC"),
	refuse("cores-per-socket=", noLayout),
	refuse("cpu-freq=", noPower),
	take("cpus-per-gpu=", count(func(s *submission) *int { return &s.perGPU }), "SBATCH_CPUS_PER_GPU"),
	take("cpus-per-task|c=", count(func(s *submission) *int { return &s.spec.Size.CPUsPerTask })),
	refuse("deadline=", "a job keeps waiting until it has run"),
	accept("delay-boot="),
	take("dependency|d=", setDependency),
	accept("distribution|m="),
	take("error|e=", text(func(s *submission) *string { return &s.order.Streams.Error }), "SBATCH_ERROR"),
	refuse("exclude|x=", anyWorker),
	refuse("exclusive?", "a worker's cpus are shared; ask for as many as it has", "SBATCH_EXCLUSIVE"),
	take("export=", text(func(s *submission) *string { return &s.export }), "SBATCH_EXPORT"),
	refuse("export-file=", "set the variables in the script"),
	refuse("extra-node-info|B=", noLayout),
	refuse("get-user-env?",
		"a job has the environment of --export; its script may run a login shell", "SBATCH_GET_USER_ENV"),
	refuse("gid=", notOthers),
	accept("gpu-bind="),
	refuse("gpu-freq=", noPower, "SBATCH_GPU_FREQ"),
	take("gpus|G=", setGPUs, "SBATCH_GPUS"),
	take("gpus-per-node=", setGPUs, "SBATCH_GPUS_PER_NODE"),
	refuse("gpus-per-socket=", noLayout),
	take("gpus-per-task=", setGPUsPerTask, "SBATCH_GPUS_PER_TASK"),
	take("gres=", setGRES, "SBATCH_GRES"),
	accept("gres-flags="),
	take("help|h", on(func(s *submission) *bool { return &s.help })),
	accept("hint="),
	refuse("hold|H", noHold),
	accept("ignore-pbs"),
	take("input|i=", text(func(s *submission) *string { return &s.order.Streams.Input }), "SBATCH_INPUT"),
	take("job-name|J=", text(func(s *submission) *string { return &s.order.Facts.Name }), "SBATCH_JOB_NAME"),
	take("kill-on-invalid-dep=", parsed(killOrphan, oneOf("yes", "no"))),
	refuse("licenses|L=", "licenses are not counted"),
	accept("mail-type= mail-user= mcs-label="),
	take("mem=", setMemory, "SBATCH_MEM_PER_NODE"),
	accept("mem-bind="),
	take("mem-per-cpu=", setMemory, "SBATCH_MEM_PER_CPU"),
	take("mem-per-gpu=", setMemory, "SBATCH_MEM_PER_GPU"),
	take("mincpus=", count(func(s *submission) *int { return &s.minCPUs })),
	accept("network="),
	take("nice?", parsed(niceness, parseNice)),
	accept("no-kill|k?"),
	take("no-requeue", setRequeue, "SBATCH_NO_REQUEUE"),
	refuse("nodefile|F= nodelist|w=", anyWorker),
	take("nodes|N=", setNodes),
	take("ntasks|n=", count(func(s *submission) *int { return &s.spec.Size.Tasks })),
	accept("ntasks-per-core="),
	refuse("ntasks-per-gpu=", noLayout),
	take("ntasks-per-node=", count(func(s *submission) *int { return &s.perNode })),
	accept("ntasks-per-socket="),
	refuse("ntasks-per-tres=", noLayout),
	take("open-mode=", parsed(appending, oneOf("a append", "t truncate")), "SBATCH_OPEN_MODE"),
	take("output|o=", text(func(s *submission) *string { return &s.order.Streams.Output }), "SBATCH_OUTPUT"),
	accept("overcommit|O oversubscribe|s"),
	take("parsable", on(func(s *submission) *bool { return &s.parsable })),
	take("partition|p=", text(func(s *submission) *string { return &s.partition }), "SBATCH_PARTITION"),
	accept("power= prefer="),
	take("priority=", parsed(niceness, parsePriority)),
	accept("profile="),
	take("propagate?", setRlimits),
	take("qos|q=", text(func(s *submission) *string { return &s.spec.QOS }), "SBATCH_QOS"),
	take("quiet|Q", on(func(s *submission) *bool { return &s.quiet })),
	refuse("reboot", "nodes are not booted"),
	take("requeue", setRequeue, "SBATCH_REQUEUE"),
	refuse("reservation=", "reservations are not supported", "SBATCH_RESERVATION"),
	take("signal=", parsed(warning, notation.ParseWarning), "SBATCH_SIGNAL"),
	refuse("sockets-per-node=", noLayout),
	accept("spread-job switches="),
	take("tasks-per-node=", count(func(s *submission) *int { return &s.perNode })),
	take("test-only", on(func(s *submission) *bool { return &s.testOnly })),
	refuse("thread-spec=", noLayout, "SBATCH_THREAD_SPEC"),
	accept("threads-per-core="),
	take("time|t=", parsed(timeLimit, notation.ParseLimit), "SBATCH_TIMELIMIT"),
	accept("time-min="),
	take("tmp=", parsed(func(s *submission) *int64 { return &s.diskMiB }, notation.ParseMemory)),
	refuse("uid=", notOthers),
	accept("use-min-nodes verbose|v"),
	take("version|V", on(func(s *submission) *bool { return &s.version })),
	take("usage", on(func(s *submission) *bool { return &s.help })),
	take("wait|W", on(func(s *submission) *bool { return &s.wait }), "SBATCH_WAIT"),
	accept("wait-all-nodes= wckey="),
	take("wrap=", func(s *submission, g notation.Given) error { s.wrap = &g.Value; return nil }),
}}

// An effect stores the argument of an option of sbatch.
type effect = notation.Effect[submission]

// take returns an option with an effect, refuse one that is not supported, and accept one that has no effect. variables
// are environment variables with its argument.
func take(names string, set effect, variables ...string) notation.Option[submission] {
	return notation.Option[submission]{Names: names, Set: set, Variables: strings.Join(variables, " ")}
}

func refuse(names, why string, variables ...string) notation.Option[submission] {
	return take(names, notation.Refuse[submission](why), variables...)
}

func accept(names string) notation.Option[submission] { return take(names, nil) }

// text and on return the effects of options that store a text, or set a flag.
func text(field func(*submission) *string) effect { return notation.Text(field) }
func on(field func(*submission) *bool) effect     { return notation.On(field) }

// invalid returns Slurm's error for an option with an invalid argument.
func invalid(g notation.Given) error { return fmt.Errorf("Invalid --%s specification", g.Name) }

// count returns the effect of an option that stores a positive number.
func count(field func(*submission) *int) effect {
	return func(s *submission, g notation.Given) (err error) {
		*field(s), err = positive(g, g.Value)
		return err
	}
}

// positive parses a number of CPUs, tasks or nodes in an option, which must be at least one.
func positive(g notation.Given, value string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil || n < 1 || n > math.MaxInt32 {
		return 0, fmt.Errorf("Invalid numeric value %q for --%s.", value, g.Name) // Slurm's wording
	}
	return n, nil
}

// parsed returns the effect of an option that stores the result of parsing its argument.
func parsed[T any](field func(*submission) *T, parse func(string) (T, error)) effect {
	return func(s *submission, g notation.Given) (err error) {
		if *field(s), err = parse(g.Value); err != nil {
			return invalid(g)
		}
		return nil
	}
}

// setMemory stores the argument of one of the three memory options. The last of these options counts, because they
// exclude each other in Slurm.
func setMemory(s *submission, g notation.Given) error {
	n, err := notation.ParseMemory(g.Value)
	if err != nil {
		return invalid(g)
	}
	s.spec.Size.MemoryMiB = n // overrides the value of the other options
	s.memories = append(slices.DeleteFunc(s.memories, func(name string) bool { return name == g.Name }), g.Name)
	return nil
}

func setArray(s *submission, g notation.Given) (err error) {
	s.array, err = notation.ParseArray(g.Value, notation.MaxTask)
	return submitFailed(err)
}

// setBegin accepts only the default of --begin.
func setBegin(_ *submission, g notation.Given) error {
	if g.Value == "now" {
		return nil
	}
	return g.Refuse(noHold)
}

// setDependency parses --dependency. Slurm detects invalid conditions only when the job is submitted, so the error has
// the wording for a failed submission.
func setDependency(s *submission, g notation.Given) (err error) {
	s.dependencies, err = notation.ParseDependencies(g.Value)
	if err == nil && s.dependencies.Any && len(s.dependencies.List) > 1 {
		return g.Refuse("a job waits for all of its conditions")
	}
	return submitFailed(err)
}

// setRequeue restarts a job whose worker is lost, or does not.
func setRequeue(s *submission, g notation.Given) error {
	s.spec.Requeue = g.Name == "requeue"
	return nil
}

// Fields of a submission.
func warning(s *submission) **notation.Warning { return &s.order.Limits.Warning }
func timeLimit(s *submission) *time.Duration   { return (*time.Duration)(&s.spec.TimeLimit) }
func killOrphan(s *submission) *bool           { return &s.spec.KillOrphan }
func appending(s *submission) *bool            { return &s.order.Streams.Append }
func niceness(s *submission) *int              { return &s.spec.Nice }

// oneOf returns a parser of an argument that is one of two groups of words. It reports whether it is in the first.
func oneOf(first, second string) func(string) (bool, error) {
	return func(text string) (bool, error) {
		text = strings.ToLower(text)
		is := slices.Contains(strings.Fields(first), text)
		if !is && !slices.Contains(strings.Fields(second), text) {
			return false, strconv.ErrSyntax
		}
		return is, nil
	}
}

// parseNice parses --nice, whose default value is 100, as in Slurm.
func parseNice(text string) (int, error) {
	n, err := strconv.ParseInt(cmp.Or(text, "100"), 10, 32)
	return int(n), err
}

// parsePriority parses --priority and returns it as a negative niceness: without the option both are 0.
func parsePriority(text string) (int, error) {
	if strings.EqualFold(text, "TOP") {
		return -topPriority, nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if n > topPriority {
		err = strconv.ErrRange
	}
	return -int(n), err
}

// setNodes parses --nodes: "1", "1-4" or "4-4". Only the minimum matters.
func setNodes(_ *submission, g notation.Given) error {
	least, most, ranged := strings.Cut(g.Value, "-")
	if !ranged {
		most = least
	}
	for _, n := range []string{least, most} {
		if strings.Trim(n, "0123456789") != "" || n == "" || len(n) > 9 {
			return fmt.Errorf("%q is not a valid node count", n)
		}
	}
	n, _ := strconv.Atoi(least)
	m, _ := strconv.Atoi(most)
	switch {
	case m < n: // Slurm's wording, here and below
		return fmt.Errorf("Maximum node count %d is less than minimum node count %d", m, n)
	case n == 0:
		return submitFailed(errors.New("Node count specification invalid"))
	case n > 1:
		return g.Refuse(oneWorker)
	}
	return nil
}

func setGPUs(s *submission, g notation.Given) (err error) {
	s.spec.Size.GPUs, err = gpuCount(g, g.Value)
	return err
}

func setGPUsPerTask(s *submission, g notation.Given) (err error) {
	s.gpuTasks, err = gpuCount(g, g.Value)
	return err
}

// gpuCount parses a number of GPUs in an option. Workers have GPUs of a single type, so a type, as in "a100:2", is
// refused.
func gpuCount(g notation.Given, value string) (int, error) {
	n, err := positive(g, value)
	switch {
	case value == "0" || value == "none": // overrides a directive in the script
		return 0, nil
	case err != nil && strings.TrimLeft(value, "0123456789") != "":
		return 0, g.Refuse("workers do not report the type of their GPUs")
	}
	return n, err
}

// setGRES accepts GPUs: "gpu", "gpu:2". Other resources are not supported.
func setGRES(s *submission, g notation.Given) (err error) {
	for one := range strings.SplitSeq(g.Value, ",") {
		name, amount, counted := strings.Cut(strings.TrimPrefix(one, "gres:"), ":")
		g.Value = one
		switch {
		case one == "" || name == "none":
			continue
		case name != "gpu": // for example fpga
			return g.Refuse("of generic resources, workers have GPUs only")
		case !counted: // a single one
			amount = "1"
		}
		if s.spec.Size.GPUs, err = gpuCount(g, amount); err != nil {
			return err
		}
	}
	return nil
}

// setRlimits parses --propagate, which lists the limits of the submitting process that the job inherits. Names are
// accepted with or without RLIMIT_, in any case.
func setRlimits(s *submission, g notation.Given) error {
	s.rlimits = nil
	switch strings.ToUpper(g.Value) {
	case "", "ALL":
		s.rlimits = step.Rlimits()
		return nil
	case "NONE":
		return nil
	}
	for name := range strings.SplitSeq(g.Value, ",") {
		upper := strings.TrimPrefix(strings.ToUpper(name), "RLIMIT_")
		if !slices.Contains(step.Rlimits(), upper) {
			return fmt.Errorf("Bad rlimit name: %s\n%s is not valid.", name, g) // Slurm's wording
		}
		s.rlimits = append(s.rlimits, upper)
	}
	return nil
}
