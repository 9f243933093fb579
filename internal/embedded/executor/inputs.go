package executor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// Inputs are links into D/data, which may link to files of the user, because a link costs nothing. A task that writes
// to a linked input changes the file for all tasks, and for its own retry; the executor detects this afterwards and
// reports it. A task receives copies if the run requests them. It also receives a copy of each file that is both an
// input and an output: the task makes a new version of such a file, and its retry must start with the old version.

// OriginalsDir is the folder in a run's directory for files that a task has replaced with its own version.
const OriginalsDir = "originals"

// updates reports whether a task makes a new version of its input.
func updates(t *execution.Task, input string) bool { return slices.Contains(t.Outputs, input) }

// Source returns the path of a task's input as its first attempt found it: an earlier attempt may have published a new
// version.
func Source(run string, t *execution.Task, input string) string {
	if updates(t, input) {
		original := run + "/" + OriginalsDir + "/" + input
		if _, err := os.Lstat(original); err == nil {
			return original
		}
	}
	return run + "/" + DataDir + "/" + input
}

// setAside saves the version of an input that the task's output replaces, unless an earlier attempt has already done
// so.
func (d TaskDir) setAside(name string) error {
	original := d.run + "/" + OriginalsDir + "/" + name
	if _, err := os.Lstat(original); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(original), 0o777); err != nil {
		return err
	}
	return os.Rename(d.run+"/"+DataDir+"/"+name, original)
}

// A brought input is an input in the task's directory, in its state before the task ran.
type brought struct {
	name   string
	copied bool // false: it is a link
	stamp  stamp
}

// A stamp distinguishes versions of a file.
type stamp struct {
	size     int64
	modified syscall.Timespec
}

func stampOf(st *syscall.Stat_t) stamp { return stamp{st.Size, st.Mtim} }

// bring makes the inputs visible in the directory, as links or copies. It detects missing inputs, so that the task need
// not check for them.
func (d TaskDir) bring(copies bool) ([]brought, error) {
	inputs := make([]brought, 0, len(d.task.Inputs))
	for _, name := range d.task.Inputs {
		in := brought{name: name, copied: copies || updates(d.task, name)}
		how := d.link
		if in.copied {
			how = d.copyIn
		}
		st, err := how(name)
		if err != nil {
			return nil, err
		}
		in.stamp = stampOf(&st)
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// copyIn copies an input into the directory and returns the status of the copy.
func (d TaskDir) copyIn(name string) (st syscall.Stat_t, err error) {
	if err := d.parents(name); err != nil {
		return st, err
	}
	from, to := Source(d.run, d.task, name), d.Path+"/"+name
	if err := syscall.Stat(from, &st); err != nil {
		return st, fmt.Errorf("input %q is missing: %w", name, err)
	}
	if err = atomicfile.Copy(from, to); err == nil {
		err = syscall.Stat(to, &st)
	}
	return st, wrap.Errorf(err, "copying input %q", name)
}

// dropCopies removes the copies of a completed task's inputs, which are not needed any more. Folders are kept, and so
// are copies that the task has changed or that are to be published.
func (d TaskDir) dropCopies(inputs []brought) {
	for _, in := range inputs {
		var st syscall.Stat_t
		at := d.Path + "/" + in.name
		if in.copied && !updates(d.task, in.name) && syscall.Lstat(at, &st) == nil &&
			st.Mode&syscall.S_IFMT == syscall.S_IFREG && stampOf(&st) == in.stamp {
			_ = syscall.Unlink(at)
		}
	}
}

// Link makes an input visible under its name.
func (d TaskDir) Link(name string) error {
	_, err := d.link(name)
	return err
}

// link makes a symbolic link to an input and returns the status of its target. The link is relative because the run's
// directory may be mounted elsewhere on another machine.
func (d TaskDir) link(name string) (st syscall.Stat_t, err error) {
	if err := d.parents(name); err != nil {
		return st, err
	}
	up := strings.Repeat("../", 2+strings.Count(filepath.Clean(name), "/"))
	at := d.Path + "/" + name
	if err := syscall.Symlink(up+DataDir+"/"+name, at); err != nil && err != syscall.EEXIST {
		return st, fmt.Errorf("linking input %q: %w", name, err)
	}
	err = syscall.Stat(at, &st)
	return st, wrap.Errorf(err, "input %q is missing", name)
}

// changed returns the names of linked inputs that have changed, up to a limit: the task has probably written to them.
func (d TaskDir) changed(inputs []brought) (names []string) {
	for _, in := range inputs {
		var st syscall.Stat_t
		same := in.copied || syscall.Stat(d.run+"/"+DataDir+"/"+in.name, &st) == nil && stampOf(&st) == in.stamp
		if !same && len(names) < execution.MostChanged {
			names = append(names, in.name)
		}
	}
	return names
}
