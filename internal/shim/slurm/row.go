package slurm

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// A row is a line of a list of jobs: a job, or all similar tasks of an array that have not started, or in sacct's list
// a job's script, which is its only step.
type row struct {
	*job
	tasks  []int     // numbers of the tasks, if the row represents unstarted tasks of an array
	now    time.Time // time up to which running jobs have run
	script bool
}

// rows converts jobs, sorted by id, to rows. Tasks of an array that have not started share a row, unless each is true.
func rows(jobs []job, each bool, now time.Time) []*row {
	var list []*row
	arrays := map[string]*row{} // array and kind of wait :: its row
	for i := range jobs {
		r := &row{job: &jobs[i], now: now}
		if r.ArrayID != 0 && !each && r.Started.IsZero() {
			key := fmt.Sprint(r.ArrayID, r.State, r.Reason == neverSatisfied)
			if shared := arrays[key]; shared != nil {
				shared.tasks = append(shared.tasks, r.ArrayTask)
				continue
			}
			arrays[key], r.tasks = r, []int{r.ArrayTask}
		}
		list = append(list, r)
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
	if r.Started.IsZero() {
		return r.array()
	}
	return strconv.Itoa(r.ID)
}

// family returns the array's id, or the job's own id if the job is not in an array; array returns it as a text.
func (r *row) family() int   { return cmp.Or(r.ArrayID, r.ID) }
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

// Values that several commands show.
func (r *row) name() string       { return r.Name }
func (r *row) user() string       { return r.Spec.User.Name }
func (r *row) userID() string     { return strconv.Itoa(r.Spec.User.UID) }
func (r *row) group() string      { return r.Spec.User.Group }
func (r *row) groupID() string    { return strconv.Itoa(r.Spec.User.GID) }
func (r *row) partition() string  { return r.Spec.Partition }
func (r *row) quality() string    { return cmp.Or(r.Spec.QOS, "normal") }
func (r *row) cpus() string       { return strconv.Itoa(r.Spec.Size.CPUs) }
func (r *row) eachCPUs() string   { return strconv.Itoa(max(1, r.Spec.Size.CPUsPerTask)) }
func (r *row) priority() string   { return strconv.FormatInt(r.Priority, 10) }
func (r *row) directory() string  { return r.Spec.Directory }
func (r *row) eligible() string   { return moment(r.Eligible, "Unknown") }
func (r *row) runtime() string    { return notation.FullClock(r.elapsed()) }
func (r *row) limitFull() string  { return r.limit(notation.FullClock) }
func (r *row) limitShort() string { return r.limit(notation.Clock) }

// elapsed returns the time for which the job has run.
func (r *row) elapsed() time.Duration {
	to := r.Ended
	if to.IsZero() {
		to = r.now
	}
	if r.Started.IsZero() { // it has not begun
		return 0
	}
	return max(0, seconds(to).Sub(seconds(r.Started)))
}

// seconds truncates a time to whole seconds, as Slurm does, so that the displayed times add up.
func seconds(t time.Time) time.Time { return t.Truncate(time.Second) }

// limit returns the time limit, in one of Slurm's notations for durations.
func (r *row) limit(write func(time.Duration) string) string {
	if r.Spec.TimeLimit == 0 {
		return "UNLIMITED"
	}
	return write(time.Duration(r.Spec.TimeLimit))
}

// left returns the time for which a job may still run: for a waiting job this is its whole limit.
func (r *row) left() string {
	left := time.Duration(r.Spec.TimeLimit) - r.elapsed()
	if r.Spec.TimeLimit != 0 && left < 0 { // it is being killed
		return "INVALID"
	}
	return r.limit(func(time.Duration) string { return notation.Clock(left) })
}

// end returns the time at which the job ended, or at which it will reach its limit.
func (r *row) end() time.Time {
	if r.State == running && r.Spec.TimeLimit != 0 {
		return r.Started.Add(time.Duration(r.Spec.TimeLimit))
	}
	return r.Ended
}

// start returns the time at which the job began to run. A job that was cancelled before its start counts as started
// when it was cancelled.
func (r *row) start() time.Time {
	if r.Started.IsZero() {
		return r.Ended
	}
	return r.Started
}

// dependency returns the conditions that the job still waits for, or that can no longer be met.
func (r *row) dependency() string {
	suffix := ""
	switch {
	case r.Spec.Dependency == "":
		return null
	case r.Reason == forDependency: // some may be met, but corrald does not report which
		suffix = "(unfulfilled)"
	case r.Reason == neverSatisfied:
		suffix = "(failed)"
	default:
		return null
	}
	return strings.NewReplacer(",", suffix+",", "?", suffix+"?").Replace(r.Spec.Dependency) + suffix
}

// where returns the value of squeue's last column: the node, or the reason why the job has no node or why it failed.
func (r *row) where() string {
	if r.State == pending || r.Reason.blames() {
		return "(" + string(r.Reason) + ")"
	}
	return r.Node
}

// memory formats an amount of memory; 0 means that none was requested.
func memory(mib int64) string {
	if mib == 0 {
		return "0"
	}
	return notation.Memory(mib)
}

// resources lists the job's resources in the order in which a command shows them, each with a comma.
func (r *row) resources(order string) string {
	var b strings.Builder
	size := r.Spec.Size
	for name := range strings.FieldsSeq(order) {
		switch {
		case name == "mem" && size.Total() > 0:
			b.WriteString("mem=" + notation.Memory(size.Total()))
		case name == "gres/gpu" && size.GPUs > 0:
			b.WriteString("gres/gpu=" + strconv.Itoa(size.GPUs))
		case name == "cpu" || name == "billing":
			b.WriteString(name + "=" + r.cpus())
		case name == "node":
			b.WriteString("node=1")
		default:
			continue
		}
		b.WriteByte(',')
	}
	return strings.TrimSuffix(b.String(), ",")
}

// file expands the pattern of a file's name, as far as the values are known: the tasks in a row have different files,
// and the name of the host on which a job runs (%N) is not stored.
func (r *row) file(pattern string) string {
	task := notation.NoTask
	if r.ArrayID != 0 && r.tasks == nil {
		task = strconv.Itoa(r.ArrayTask)
	}
	return notation.Expand(pattern, notation.FileNames(int64(r.ID), int64(r.family()), task, r.Name, r.user()))
}

// pattern returns the name of a file in squeue's notation: the pattern itself, unless it is a default name.
func (r *row) pattern(name string) string {
	if base := filepath.Base(name); base == "slurm-%j.out" || base == "slurm-%A_%a.out" {
		return filepath.Join(filepath.Dir(name), "slurm-"+r.raw()+".out")
	}
	return name
}

// errorFile returns the name of the file for standard error, which may be the same as that for standard output.
func (r *row) errorFile() string { return cmp.Or(r.Spec.Error, r.Spec.Output) }

func (r *row) stdin() string {
	if r.Spec.Input == "" {
		return "/dev/null"
	}
	return filepath.Clean(r.file(r.Spec.Input))
}
