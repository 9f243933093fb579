package job

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// null is the text that Slurm's commands print for a missing value.
const null = "(null)"

// A row is a line of output: a job, or all similar tasks of an array that have not started.
type row struct {
	*Job
	tasks []int     // numbers of the tasks, if the row represents unstarted tasks of an array
	now   time.Time // time up to which running jobs have run
}

// rows converts jobs, sorted by id, to rows. Tasks of an array that have not started share a row, unless each is true.
func rows(jobs []Job, each bool, now time.Time) []row {
	var list []row
	arrays := map[string]int{} // array, state and reason :: its row
	for i := range jobs {
		j := &jobs[i]
		if j.ArrayID == 0 || each || !j.Times.Started.IsZero() {
			list = append(list, row{Job: j, now: now})
			continue
		}
		key := fmt.Sprint(j.ArrayID, j.State, j.Reason == NeverSatisfied)
		at, ok := arrays[key]
		if !ok {
			at = len(list)
			arrays[key] = at
			list = append(list, row{Job: j, now: now})
		}
		list[at].tasks = append(list[at].tasks, j.ArrayTask)
	}
	for _, r := range list {
		slices.Sort(r.tasks)
	}
	return list
}

// id returns the job's id in the notation for users: "12", "12_3", or "12_[1-4]".
func (r *row) id() string {
	switch {
	case r.ArrayID == 0: // not in an array
		return strconv.Itoa(r.ID)
	case r.tasks != nil:
		return fmt.Sprintf("%d_[%s]", r.ArrayID, notation.ShowNumbers(r.tasks))
	}
	return fmt.Sprintf("%d_%d", r.ArrayID, r.ArrayTask)
}

// raw returns the job's own number. Tasks that have not started have the number of their array.
func (r *row) raw() string {
	if r.ArrayID != 0 && r.Times.Started.IsZero() {
		return strconv.Itoa(r.ArrayID)
	}
	return strconv.Itoa(r.ID)
}

// family returns the array's id, or the job's own id if the job is not in an array.
func (r *row) family() int {
	if r.ArrayID != 0 {
		return r.ArrayID
	}
	return r.ID
}

func (r *row) array() string { return strconv.Itoa(r.family()) }

// arrayTask returns the number of the task in its array, or the numbers of all tasks in the row.
func (r *row) arrayTask() string {
	switch {
	case r.ArrayID == 0:
		return "N/A"
	case r.tasks != nil:
		return notation.ShowNumbers(r.tasks)
	}
	return strconv.Itoa(r.ArrayTask)
}

// elapsed returns the time for which the job has run.
func (r *row) elapsed() time.Duration {
	switch t := r.Times; {
	case t.Started.IsZero(): // it has not begun
		return 0
	case t.Ended.IsZero():
		return max(0, seconds(r.now).Sub(seconds(t.Started)))
	default:
		return max(0, seconds(t.Ended).Sub(seconds(t.Started)))
	}
}

// seconds truncates a time to whole seconds, as Slurm does, so that the displayed times add up.
func seconds(t time.Time) time.Time { return t.Truncate(time.Second) }

// limit returns the time limit, in one of Slurm's two notations for durations.
func (r *row) limit(write func(time.Duration) string) string {
	if r.Spec.TimeLimit == 0 {
		return "UNLIMITED"
	}
	return write(r.Spec.TimeLimit)
}

// left returns the time for which a job may still run: for a waiting job this is its whole limit.
func (r *row) left() string {
	left := r.Spec.TimeLimit - r.elapsed()
	switch {
	case r.Spec.TimeLimit == 0:
		return "UNLIMITED"
	case left < 0: // it is being killed
		return "INVALID"
	}
	return notation.Clock(left)
}

// end returns the time at which the job ended, or at which it will reach its limit.
func (r *row) end() time.Time {
	if r.State == Running && r.Spec.TimeLimit != 0 {
		return r.Times.Started.Add(r.Spec.TimeLimit)
	}
	return r.Times.Ended
}

// start returns the time at which the job began to run. A job cancelled before its start counts as begun at that time.
func (r *row) start() time.Time {
	if r.Times.Started.IsZero() {
		return r.Times.Ended
	}
	return r.Times.Started
}

// moment formats a time, or returns none for the zero time.
func moment(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return notation.Moment(t)
}

// dependency returns the conditions that the job still waits for, or that can no longer be met.
func (r *row) dependency() string {
	suffix := ""
	switch {
	case r.Spec.Dependency == "":
		return null
	case r.Reason == ForDependency: // some may be met, but corrald does not report which
		suffix = "(unfulfilled)"
	case r.Reason == NeverSatisfied:
		suffix = "(failed)"
	default:
		return null
	}
	var b strings.Builder
	for rest := r.Spec.Dependency; rest != ""; {
		at := strings.IndexAny(rest, ",?")
		if at < 0 {
			return b.String() + rest + suffix
		}
		b.WriteString(rest[:at] + suffix + rest[at:at+1])
		rest = rest[at+1:]
	}
	return b.String()
}

// where returns the value of squeue's last column: the node, or the reason why the job has no node or why it failed.
func (r *row) where() string {
	if r.State == Pending || r.Reason.blames() {
		return "(" + string(r.Reason) + ")"
	}
	return r.Node
}

// memory returns the minimum memory as requested: for the job, or for each CPU.
func (r *row) memory() string {
	if r.Spec.Size.MemoryMiB == 0 {
		return "0"
	}
	return notation.Memory(r.Spec.Size.MemoryMiB)
}

// tres lists the job's resources in scontrol's notation.
func (r *row) tres() string {
	text := fmt.Sprintf("cpu=%d,", r.Spec.Size.CPUs)
	if total := r.Spec.Size.Total(); total > 0 {
		text += "mem=" + notation.Memory(total) + ","
	}
	text += fmt.Sprintf("node=1,billing=%d", r.Spec.Size.CPUs)
	if r.Spec.Size.GPUs > 0 {
		text += fmt.Sprintf(",gres/gpu=%d", r.Spec.Size.GPUs)
	}
	return text
}

// file expands the pattern of a file's name, as far as the values are known: the tasks in a row have different files.
func (r *row) file(pattern string) string {
	values := map[byte]string{
		'j': strconv.Itoa(r.ID), 'A': r.array(), 'x': r.Name, 'u': r.Spec.User.Name, 'a': strconv.Itoa(r.ArrayTask),
		's': "batch", 'n': "0", 't': "0",
	}
	if r.ArrayID == 0 {
		values['a'] = "4294967294" // Slurm's value for a job that is not in an array
	}
	if r.tasks != nil {
		values['a'] = "4294967294"
	}
	if r.Node != "" {
		values['N'] = r.Node
	}
	return notation.Expand(pattern, values)
}

// pattern returns the name of a file in squeue's notation: the pattern itself, unless it is a default name.
func (r *row) pattern(name string) string {
	if base := filepath.Base(name); base == "slurm-%j.out" || base == "slurm-%A_%a.out" {
		return filepath.Join(filepath.Dir(name), "slurm-"+r.raw()+".out")
	}
	return name
}

// stderr returns the file for standard error, which may be the same as the file for standard output.
func (r *row) stderr() string {
	if r.Spec.Files.Error == "" {
		return r.file(r.Spec.Files.Output)
	}
	return r.file(r.Spec.Files.Error)
}

func (r *row) stdin() string {
	if r.Spec.Files.Input == "" {
		return "/dev/null"
	}
	return filepath.Clean(r.file(r.Spec.Files.Input))
}

// cell formats a column's text with the given width, right- or left-aligned; width 0 means any width.
func cell(text string, width int, right bool) string {
	switch {
	case width == 0:
		return text
	case len(text) > width:
		return text[:width]
	case right:
		return strings.Repeat(" ", width-len(text)) + text
	}
	return text + strings.Repeat(" ", width-len(text))
}
