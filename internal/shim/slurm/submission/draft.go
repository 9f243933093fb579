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

// A draft is a submission while its options are being parsed. Later options override earlier ones.
type draft struct {
	Submission
	help, version bool     // only this is requested
	wrap          *string  // nil: there is a script
	export        string   // argument of --export
	memories      []string // the memory options given, the latest last: "mem" (the job), "cpu" or "gpu"
	perGPU        int      // CPUs per GPU
	perNode       int      // tasks per node
	minCPUs       int
	gpuTasks      int // gpus per task
}

// text returns a parser that stores an argument unchanged.
func text(field func(*draft) *string) func(*draft, string) error {
	return func(d *draft, value string) error { *field(d) = value; return nil }
}

// answer returns a parser that sets a flag.
func answer(field func(*draft) *bool) func(*draft, string) error {
	return func(d *draft, _ string) error { *field(d) = true; return nil }
}

func requeue(on bool) func(*draft, string) error {
	return func(d *draft, _ string) error { d.Limits.Requeue = on; return nil }
}

// An errNumber reports, in Slurm's wording, that an argument is not a positive number. The caller adds the option.
type errNumber struct{ value string }

func (e errNumber) Error() string { return fmt.Sprintf("Invalid numeric value %q for", e.value) }

// count returns a parser that stores a positive number.
func count(field func(*draft) *int) func(*draft, string) error {
	return func(d *draft, value string) error {
		n, err := positive(value)
		*field(d) = n
		return err
	}
}

// positive parses a number of CPUs, tasks or nodes, which must be at least one.
func positive(value string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil || n < 1 || n > math.MaxInt32 {
		return 0, errNumber{value}
	}
	return n, nil
}

// parsed returns a parser that stores the result of parsing an argument.
func parsed[T any](field func(*draft) *T, parse func(string) (T, error)) func(*draft, string) error {
	return func(d *draft, value string) (err error) {
		if *field(d), err = parse(value); err != nil {
			return errInvalid
		}
		return nil
	}
}

// errInvalid represents the error "Invalid --option specification"; the caller adds the option.
var errInvalid = errors.New("invalid specification")

// memory returns the parser for one of the three memory options. The last of these options counts, because they exclude
// each other in Slurm.
func memory(of string) func(*draft, string) error {
	return func(d *draft, value string) error {
		n, err := notation.ParseMemory(value)
		if err != nil {
			return errInvalid
		}
		d.Size.MemoryMiB = n // overrides the value of the other options
		d.memories = append(slices.DeleteFunc(d.memories, func(s string) bool { return s == of }), of)
		return nil
	}
}

func (d *draft) array(value string) (err error) {
	d.Array, err = notation.ParseArray(value, notation.MaxTask)
	return Failed(err)
}

// dependency parses --dependency. Slurm detects invalid conditions only when the job is submitted, so the error has the
// wording for a failed submission.
func (d *draft) dependency(value string) (err error) {
	d.Placing.Dependencies, err = notation.ParseDependencies(value)
	if err == nil && d.Placing.Dependencies.Any && len(d.Placing.Dependencies.List) > 1 {
		return &notation.Unsupported{What: "--dependency=" + value, Why: "a job waits for all of its conditions"}
	}
	return Failed(err)
}

// Failed adds sbatch's prefix for errors of the daemon that accepts jobs. An Unsupported error is returned unchanged.
func Failed(err error) error {
	if unsupported := (*notation.Unsupported)(nil); err == nil || errors.As(err, &unsupported) {
		return err
	}
	return fmt.Errorf("Batch job submission failed: %w", err) // Slurm's wording
}

// killInvalid parses --kill-on-invalid-dep: yes cancels a job whose condition can no longer be met, and no leaves it
// pending.
func (d *draft) killInvalid(value string) error {
	d.Placing.KillInvalid = strings.EqualFold(value, "yes")
	if !d.Placing.KillInvalid && !strings.EqualFold(value, "no") {
		return errInvalid
	}
	return nil
}

// openMode parses --open-mode: output files are either truncated or appended to. A requeued job appends by default.
func (d *draft) openMode(value string) error {
	d.Stdio.Append = value == "a" || value == "append"
	if !d.Stdio.Append && value != "t" && value != "truncate" {
		return errInvalid
	}
	return nil
}

// nice parses --nice, whose default value is 100, as in Slurm.
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

// topPriority is Slurm's highest priority, which is also the value of "TOP".
const topPriority = 1<<32 - 3

// priority parses --priority and stores it as a negative niceness: without the option both are 0.
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

// nodes parses --nodes: "1", "1-4" or "4-4". Only the minimum matters.
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
		// Slurm's wording
		return fmt.Errorf("Maximum node count %d is less than minimum node count %d", m, n)
	case n == 0:
		return Failed(errors.New("Node count specification invalid")) // likewise
	case n > 1:
		return &notation.Unsupported{What: "--nodes=" + value, Why: oneWorker}
	}
	return nil
}

// gpus accepts "2" or "gpu:2"; a type, as in "a100:2", is not supported.
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

// gpuCount parses the number of gpus for an option. Workers have gpus of a single type, so a type is refused by name.
func gpuCount(what, value string) (int, error) {
	n, err := positive(value)
	switch {
	case value == "0" || value == "none": // overrides a directive in the script
		return 0, nil
	case err != nil && strings.TrimLeft(value, "0123456789") != "":
		return 0, &notation.Unsupported{What: what, Why: "workers do not report the type of their GPUs"}
	}
	return n, err
}

// gres accepts GPUs: "gpu", "gpu:2", "gpu:a100:2". Other resources are not supported.
func (d *draft) gres(value string) error {
	for one := range strings.SplitSeq(value, ",") {
		name, amount, counted := strings.Cut(strings.TrimPrefix(one, "gres:"), ":")
		switch {
		case one == "" || name == "none":
			continue
		case name != "gpu": // for example fpga
			return &notation.Unsupported{What: "--gres=" + one, Why: "of generic resources, workers have GPUs only"}
		case !counted: // a single one
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

// AllRlimits are the limits of processes that sbatch supports, by their names without RLIMIT_.
var AllRlimits = []string{"AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK"}

// propagate parses --propagate, which lists the limits of the submitting process that the job inherits. Names are
// accepted with or without RLIMIT_, in any case.
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
			return fmt.Errorf("Bad rlimit name: %s\n--propagate=%s is not valid.", name, value) // Slurm's wording
		}
		names = append(names, upper)
	}
	d.Limits.Rlimits = names
	return nil
}
