package step

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/wrap"
	"github.com/corral-pilot/corral/internal/shim/slurm/notation"
)

// MarkOf identifies a directory, to distinguish it from a directory with the same name on another machine. It returns
// the inode number, which is the same wherever the file system is mounted, or 0 if the directory does not exist.
func MarkOf(dir string) uint64 {
	var st syscall.Stat_t
	if syscall.Stat(dir, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		return 0
	}
	return st.Ino
}

// visible refuses a directory that is not the one in which sbatch was called.
func (p Place) visible(host string) error {
	const all = 4 | 1 // R_OK, X_OK
	mark := MarkOf(p.Directory)
	switch {
	case mark == 0:
		return fmt.Errorf("worker %s does not see the job's directory %s: jobs of a shim need a file system that "+
			"workers share with the machine where sbatch is called", host, p.Directory)
	case p.Mark != 0 && mark != p.Mark:
		return fmt.Errorf("on worker %s, %s is not the directory that it is on %s: jobs of a shim need a file "+
			"system that workers share with the machine where sbatch is called", host, p.Directory, p.Host)
	}
	err := syscall.Access(p.Directory, all)
	return wrap.Errorf(err, "on worker %s, the job's directory %s cannot be entered", host, p.Directory)
}

// An instance identifies one of an order's jobs, and the host on which it runs.
type instance struct {
	id      int64 // of this job
	arrayID int64 // of its array; its own id if it is not in an array
	tasks   []int // the numbers of the array's tasks; nil: not in an array
	element int   // its index among them
	attempt int   // 1 for the first
	host    string
}

// number returns the job's number in its array, or NoTask.
func (i instance) number() string {
	if i.tasks == nil {
		return notation.NoTask
	}
	return strconv.Itoa(i.tasks[i.element])
}

// instanceOf reads the variables that the worker sets for a task.
func instanceOf(o Order, getenv func(string) string) (i instance, err error) {
	number := func(name string) int64 {
		n, bad := strconv.ParseInt(getenv(name), 10, 62)
		if bad != nil && err == nil {
			err = fmt.Errorf("the job's worker has set %s=%q, which is not a number", name, getenv(name))
		}
		return n
	}
	i.id, i.attempt = o.Base+number(corral.IDVariable), int(number(corral.AttemptVariable))
	if i.arrayID = i.id; o.Array != "" {
		array, err := notation.ParseArray(o.Array, notation.MaxTask)
		if err != nil {
			return i, fmt.Errorf("reading the job's array: %w", err)
		}
		i.tasks, i.element = array.Tasks, int(number(corral.ElementVariable))
		i.arrayID -= int64(i.element)
		if i.element < 0 || i.element >= len(i.tasks) {
			return i, fmt.Errorf("the array has %d tasks, but this is number %d", len(i.tasks), i.element)
		}
	}
	if err != nil {
		return i, err
	}
	// Slurm uses short names for nodes, and clients split the names at dots.
	i.host, err = os.Hostname()
	i.host, _, _ = strings.Cut(i.host, ".")
	return i, err
}

// names returns the values of % patterns in file names.
func (o Order) names(i instance) map[byte]string {
	names := notation.FileNames(i.id, i.arrayID, i.number(), o.Facts.Name, o.Facts.User)
	names['N'] = i.host
	return names
}
