package submission

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A draft is a submission while options are still being read. Later options override earlier ones.
type draft struct {
	Submission
	help, version bool     // and nothing else is wanted
	wrap          *string  // nil: there is a script
	export        string   // what followed --export
	memories      []string // what memory was said for, the last last: "mem" (the job), "cpu" or "gpu"
	perGPU        int      // cpus
	perNode       int      // tasks
	minCPUs       int
	gpuTasks      int // gpus of each task
}

// text takes over an argument as it is.
func text(field func(*draft) *string) func(*draft, string) error {
	return func(d *draft, value string) error { *field(d) = value; return nil }
}

// answer turns something on.
func answer(field func(*draft) *bool) func(*draft, string) error {
	return func(d *draft, _ string) error { *field(d) = true; return nil }
}

func requeue(on bool) func(*draft, string) error {
	return func(d *draft, _ string) error { d.Limits.Requeue = on; return nil }
}

// An errNumber says in Slurm's words that an argument is not a number above zero. The caller adds the option.
type errNumber struct{ value string }

func (e errNumber) Error() string { return fmt.Sprintf("Invalid numeric value %q for", e.value) }

// count takes over a number from 1.
func count(field func(*draft) *int) func(*draft, string) error {
	return func(d *draft, value string) error {
		n, err := positive(value)
		*field(d) = n
		return err
	}
}

// positive reads a number of cpus, tasks or nodes, of which there is at least one.
func positive(value string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil || n < 1 || n > math.MaxInt32 {
		return 0, errNumber{value}
	}
	return n, nil
}

// parsed takes over what parse makes of an argument.
func parsed[T any](field func(*draft) *T, parse func(string) (T, error)) func(*draft, string) error {
	return func(d *draft, value string) (err error) {
		if *field(d), err = parse(value); err != nil {
			return errInvalid
		}
		return nil
	}
}

// errInvalid stands for "Invalid --option specification", to which the caller adds the option.
var errInvalid = errors.New("invalid specification")

// memory returns what reads one of the three options that say how much memory there is. The last one given counts,
// since they exclude one another in Slurm.
func memory(of string) func(*draft, string) error {
	return func(d *draft, value string) error {
		n, err := notation.ParseMemory(value)
		if err != nil {
			return errInvalid
		}
		d.Size.MemoryMiB = n // what was said of the others before counts no more
		d.memories = append(slices.DeleteFunc(d.memories, func(s string) bool { return s == of }), of)
		return nil
	}
}

func (d *draft) array(value string) (err error) {
	d.Array, err = notation.ParseArray(value, notation.MaxTask)
	return Failed(err)
}

// dependency reads --dependency. What it refuses, Slurm's controller refuses only when the job is submitted, so
// the words are those of a submission that failed.
func (d *draft) dependency(value string) (err error) {
	d.Placing.Dependencies, err = notation.ParseDependencies(value)
	if err == nil && d.Placing.Dependencies.Any && len(d.Placing.Dependencies.List) > 1 {
		return &notation.Unsupported{What: "--dependency=" + value, Why: "a job waits for all of its conditions"}
	}
	return Failed(err)
}

// Failed adds what sbatch says before the words of the daemon that takes jobs. What is unsupported stays as it is.
func Failed(err error) error {
	if unsupported := (*notation.Unsupported)(nil); err == nil || errors.As(err, &unsupported) {
		return err
	}
	return fmt.Errorf("Batch job submission failed: %w", err) // Slurm's words
}

// killInvalid reads --kill-on-invalid-dep: yes ends a job whose condition can hold no more, and no leaves it
// pending.
func (d *draft) killInvalid(value string) error {
	d.Placing.KillInvalid = strings.EqualFold(value, "yes")
	if !d.Placing.KillInvalid && !strings.EqualFold(value, "no") {
		return errInvalid
	}
	return nil
}

// openMode reads --open-mode: whether output files are cut first, or appended to. A requeued job appends unless
// told.
func (d *draft) openMode(value string) error {
	d.Stdio.Append = value == "a" || value == "append"
	if !d.Stdio.Append && value != "t" && value != "truncate" {
		return errInvalid
	}
	return nil
}

// nice is 100 without a value, as Slurm has it.
func (d *draft) nice(value string) error {
	if value == "" {
		value = "100"
	}
	n, err := strconv.Atoi(value)
	if err != nil || n > math.MaxInt32 || n < math.MinInt32 {
		return errInvalid
	}
	d.Placing.Nice = n
	return nil
}

// topPriority is the highest that Slurm has: that of "TOP".
const topPriority = 1<<32 - 3

// priority counts as niceness, turned round: who says nothing has neither.
func (d *draft) priority(value string) error {
	if strings.EqualFold(value, "TOP") {
		d.Placing.Nice = -topPriority
		return nil
	}
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil || n > topPriority {
		return errInvalid
	}
	d.Placing.Nice = -int(n)
	return nil
}

// nodes is "1", "1-4" or "4-4": only the least of them matters.
func (d *draft) nodes(value string) error {
	least, most, ranged := strings.Cut(value, "-")
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
	case m < n:
		// Slurm's words
		return fmt.Errorf("Maximum node count %d is less than minimum node count %d", m, n)
	case n == 0:
		return Failed(errors.New("Node count specification invalid")) // likewise
	case n > 1:
		return &notation.Unsupported{What: "--nodes=" + value, Why: oneWorker}
	}
	return nil
}

// gpus is "2" or "gpu:2"; a kind, as in "a100:2", cannot be had.
func (d *draft) gpus(value string) error {
	n, err := gpuCount("--gpus="+value, value)
	d.Size.GPUs = n
	return err
}

func (d *draft) gpusPerTask(value string) error {
	n, err := gpuCount("--gpus-per-task="+value, value)
	d.gpuTasks = n
	return err
}

// gpuCount reads how many gpus an option wants. Workers have gpus of one kind only, so a kind is refused by name.
func gpuCount(what, value string) (int, error) {
	n, err := positive(value)
	switch {
	case value == "0" || value == "none": // takes back what a script says
		return 0, nil
	case err != nil && strings.TrimLeft(value, "0123456789") != "":
		return 0, &notation.Unsupported{What: what, Why: "workers do not say which kind of GPUs they have"}
	}
	return n, err
}

// gres takes GPUs: "gpu", "gpu:2", "gpu:a100:2". Other things are not counted.
func (d *draft) gres(value string) error {
	for one := range strings.SplitSeq(value, ",") {
		name, amount, counted := strings.Cut(strings.TrimPrefix(one, "gres:"), ":")
		switch {
		case one == "" || name == "none":
			continue
		case name != "gpu": // fpga, say
			return &notation.Unsupported{What: "--gres=" + one, Why: "of generic resources, workers have GPUs only"}
		case !counted: // one
			amount = "1"
		}
		if err := d.gpus(amount); err != nil {
			if unsupported := (*notation.Unsupported)(nil); errors.As(err, &unsupported) {
				unsupported.What = "--gres=" + one
			}
			return err
		}
	}
	return nil
}

// AllRlimits are the limits of processes that sbatch knows, by their names without RLIMIT_.
var AllRlimits = []string{"AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK"}

// propagate reads --propagate: which limits of the submitting process the job gets. Names are taken with RLIMIT_
// before them and without, in any case.
func (d *draft) propagate(value string) error {
	switch strings.ToUpper(value) {
	case "", "ALL":
		d.Limits.Rlimits = AllRlimits
		return nil
	case "NONE":
		d.Limits.Rlimits = nil
		return nil
	}
	var names []string
	for name := range strings.SplitSeq(value, ",") {
		upper := strings.TrimPrefix(strings.ToUpper(name), "RLIMIT_")
		if !slices.Contains(AllRlimits, upper) {
			return fmt.Errorf("Bad rlimit name: %s\n--propagate=%s is not valid.", name, value) // Slurm's words
		}
		names = append(names, upper)
	}
	d.Limits.Rlimits = names
	return nil
}
