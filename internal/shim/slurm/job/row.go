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

// null is how Slurm's commands write what is not there.
const null = "(null)"

// A row is a line of output: a job, or all of an array's tasks that never started and are alike.
type row struct {
	*Job
	tasks []int     // numbers of the tasks, if they are several, or one of them has not left the array yet
	now   time.Time // until which what runs has run
}

// rows makes rows of jobs, which come in the order of their ids. Tasks of an array that have not started are together
// in one, unless each is wanted for itself.
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

// id is the job's as people write it: "12", "12_3", or "12_[1-4]".
func (r *row) id() string {
	switch {
	case r.ArrayID == 0: // no array
		return strconv.Itoa(r.ID)
	case r.tasks != nil:
		return fmt.Sprintf("%d_[%s]", r.ArrayID, notation.ShowNumbers(r.tasks))
	}
	return fmt.Sprintf("%d_%d", r.ArrayID, r.ArrayTask)
}

// raw is the number that the job alone has. Tasks that have not started yet have their array's.
func (r *row) raw() string {
	if r.ArrayID != 0 && r.Times.Started.IsZero() {
		return strconv.Itoa(r.ArrayID)
	}
	return strconv.Itoa(r.ID)
}

// family is the array's id, or else the job's.
func (r *row) family() int {
	if r.ArrayID != 0 {
		return r.ArrayID
	}
	return r.ID
}

func (r *row) array() string { return strconv.Itoa(r.family()) }

// arrayTask is the number of the task in its array, or of all in the row.
func (r *row) arrayTask() string {
	switch {
	case r.ArrayID == 0:
		return "N/A"
	case r.tasks != nil:
		return notation.ShowNumbers(r.tasks)
	}
	return strconv.Itoa(r.ArrayTask)
}

// elapsed is for how long the job has run.
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

// seconds cuts a time to whole seconds, as Slurm has them, so that what is shown adds up.
func seconds(t time.Time) time.Time { return t.Truncate(time.Second) }

// limit is the time limit, by one of Slurm's two ways to write times.
func (r *row) limit(write func(time.Duration) string) string {
	if r.Spec.TimeLimit == 0 {
		return "UNLIMITED"
	}
	return write(r.Spec.TimeLimit)
}

// left says how long a job may still run: its whole limit while it waits. One without a limit is never short of
// time.
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

// end is when the job ended, or when it will have to.
func (r *row) end() time.Time {
	if r.State == Running && r.Spec.TimeLimit != 0 {
		return r.Times.Started.Add(r.Spec.TimeLimit)
	}
	return r.Times.Ended
}

// start is when the job began to run. One that was cancelled before counts as begun when it was.
func (r *row) start() time.Time {
	if r.Times.Started.IsZero() {
		return r.Times.Ended
	}
	return r.Times.Started
}

// moment writes a time, or what stands for none.
func moment(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return notation.Moment(t)
}

// dependency says what the job still waits for, or what cannot come any more.
func (r *row) dependency() string {
	suffix := ""
	switch {
	case r.Spec.Dependency == "":
		return null
	case r.Reason == ForDependency: // some may hold: corrald does not tell which
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

// where is squeue's last column: the node, or why there is none, or why it was in vain.
func (r *row) where() string {
	if r.State == Pending || r.Reason.blames() {
		return "(" + string(r.Reason) + ")"
	}
	return r.Node
}

// memory is the least memory as it was asked for: of the job, or of each cpu.
func (r *row) memory() string {
	if r.Spec.Size.MemoryMiB == 0 {
		return "0"
	}
	return notation.Memory(r.Spec.Size.MemoryMiB)
}

// tres lists what the job takes, as scontrol does.
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

// file fills in the pattern of a file's name, as far as it is known: several tasks have several files.
func (r *row) file(pattern string) string {
	values := map[byte]string{
		'j': strconv.Itoa(r.ID), 'A': r.array(), 'x': r.Name, 'u': r.Spec.User.Name, 'a': strconv.Itoa(r.ArrayTask),
		's': "batch", 'n': "0", 't': "0",
	}
	if r.ArrayID == 0 {
		values['a'] = "4294967294" // as Slurm writes no task of an array
	}
	if r.tasks != nil {
		values['a'] = "4294967294"
	}
	if r.Node != "" {
		values['N'] = r.Node
	}
	return notation.Expand(pattern, values)
}

// pattern is a file as squeue shows it: with its pattern, but for the default names.
func (r *row) pattern(name string) string {
	if base := filepath.Base(name); base == "slurm-%j.out" || base == "slurm-%A_%a.out" {
		return filepath.Join(filepath.Dir(name), "slurm-"+r.raw()+".out")
	}
	return name
}

// stderr is the file of the standard error, which may be that of the output.
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

// A cell is what a column says of a row, to so many characters, to the right or the left; 0 is any number.
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
