package executor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/kit/atomicfile"
)

// Names in a run's directory and in an attempt's.
const (
	DataDir    = "data"
	TasksDir   = "tasks"
	RecordFile = "record.json"
)

// ErrStale says that the worker may not publish any more.
var ErrStale = errors.New("the worker had no answer from its dispatcher for longer than its lease")

// A TaskDir is the directory of one attempt of a task: D/tasks/ID.ATTEMPT. Its methods use plain system calls and no
// path functions of the standard library: they run once for each task of a millisecond, and such functions would be the
// larger part of it.
type TaskDir struct {
	run  string // D
	Path string
	at   int    // a directory that is open; AT_FDCWD: none
	name string // that Path has there
	task *execution.Task
}

// furnish makes the directory afresh, brings the inputs into it, and makes the directories that outputs are to be
// in, so that no task has to. Its errors are sentences about the task.
func (d *TaskDir) furnish(copies bool) (inputs []brought, err error) {
	if err := d.make(); err != nil {
		return nil, err
	}
	if inputs, err = d.bring(copies); err != nil {
		return nil, err
	}
	for _, name := range d.task.Outputs {
		if err := d.parents(name); err != nil {
			return nil, err
		}
	}
	return inputs, nil
}

// BareTaskDir makes the directory afresh, without inputs.
func BareTaskDir(run string, t *execution.Task) (TaskDir, error) {
	d, err := taskDir(run, t, unix.AT_FDCWD)
	if err == nil {
		err = d.make()
	}
	return d, err
}

// taskDir returns what the directory is to be; tasks is D/tasks, open, or AT_FDCWD.
func taskDir(run string, t *execution.Task, tasks int) (TaskDir, error) {
	if err := checkNames(t); err != nil {
		return TaskDir{}, err
	}
	d := TaskDir{run: run, at: tasks, name: t.ID + "." + strconv.Itoa(t.Attempt), task: t}
	d.Path = run + "/" + TasksDir + "/" + d.name
	if tasks == unix.AT_FDCWD {
		d.name = d.Path
	}
	return d, nil
}

// checkNames refuses names that lead out of the directories that they are meant for. The workflow was checked when the
// run was made; a worker does not rely on that, because its jobs come over the network.
func checkNames(t *execution.Task) error {
	if !filepath.IsLocal(t.ID) || strings.Contains(t.ID, "/") {
		return fmt.Errorf("task id %q cannot be the name of a directory", t.ID)
	}
	for _, names := range [][]string{t.Inputs, t.Outputs, {t.Stdin, t.Stdout, t.Stderr}} {
		for _, name := range names {
			if name != "" && !filepath.IsLocal(name) {
				return fmt.Errorf("file name %q leads out of the task's directory", name)
			}
		}
	}
	stdout, stderr := t.Streams()
	for _, name := range []string{stdout, stderr} {
		if slices.Contains(t.Inputs, name) {
			return fmt.Errorf("file %q is both input and output stream", name)
		}
	}
	return nil
}

// make makes the directory itself. One that is there is of an instance of the worker that died while it ran the same
// attempt: it goes, with whatever it left.
func (d *TaskDir) make() error {
	err := syscall.Mkdirat(d.at, d.name, 0o777)
	switch err {
	case syscall.ENOENT, syscall.ESTALE: // the first task of the run; or what is open has been removed
		d.at, d.name = unix.AT_FDCWD, d.Path
		if err = syscall.Mkdir(d.run+"/"+TasksDir, 0o777); err == nil || err == syscall.EEXIST {
			err = syscall.Mkdir(d.Path, 0o777)
		}
	case syscall.EEXIST:
		if err = atomicfile.RemoveAll(d.Path); err == nil {
			err = syscall.Mkdirat(d.at, d.name, 0o777)
		}
	}
	if err != nil {
		return fmt.Errorf("making the task's directory: %w", &os.PathError{Op: "mkdir", Path: d.Path, Err: err})
	}
	return nil
}

// parents makes the directories that name has below the task's.
func (d TaskDir) parents(name string) error {
	if !strings.Contains(name, "/") {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(d.Path+"/"+name), 0o777); err != nil {
		return fmt.Errorf("making the directory of %q: %w", name, err)
	}
	return nil
}

// create opens a new file of the task for writing, but not what a link leads to: an input is a link, and must not be
// written.
func (d TaskDir) create(name string) (int, error) {
	if err := d.parents(name); err != nil {
		return -1, err
	}
	const mode = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_TRUNC | syscall.O_NOFOLLOW | syscall.O_CLOEXEC
	fd, err := syscall.Openat(d.at, d.name+"/"+name, mode, 0o666)
	if err != nil {
		return -1, fmt.Errorf("creating %q: %w", name, err)
	}
	return fd, nil
}

// stdio opens the task's standard input, output and error; null is what stdin is without a file.
func (d TaskDir) stdio(null int) (in, out, err int, trouble error) {
	in, out, err = null, -1, -1
	outName, errName := d.task.Streams()
	if name := d.task.Stdin; name != "" {
		if in, trouble = syscall.Open(d.Path+"/"+name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0); trouble != nil {
			return null, -1, -1, fmt.Errorf("standard input %q: %w", name, trouble)
		}
	}
	if out, trouble = d.create(outName); trouble == nil {
		if err = out; errName != outName {
			err, trouble = d.create(errName)
		}
	}
	if trouble != nil {
		closeStdio(null, in, out, err)
		return null, -1, -1, trouble
	}
	return in, out, err, nil
}

// closeStdio closes what stdio opened.
func closeStdio(null, in, out, err int) {
	if in != null {
		_ = syscall.Close(in)
	}
	if out >= 0 {
		_ = syscall.Close(out)
	}
	if err >= 0 && err != out {
		_ = syscall.Close(err)
	}
}

// Publish renames the outputs into D/data, if all are there and for as long as fresh says that this worker still may:
// ErrStale if not. First all are looked at, so that a task which lacks one publishes none. An output that an attempt
// before left there is replaced. fresh is asked last of all, too: a result that comes too late must not count.
func (d TaskDir) Publish(fresh func() bool) error {
	var st syscall.Stat_t
	for _, name := range d.task.Outputs {
		if err := syscall.Lstat(d.Path+"/"+name, &st); err != nil {
			return fmt.Errorf("output %q is missing: %w", name, err)
		}
		switch st.Mode & syscall.S_IFMT {
		case syscall.S_IFREG, syscall.S_IFDIR:
		case syscall.S_IFLNK:
			return fmt.Errorf("output %q is a symbolic link, which would lead nowhere", name)
		default: // whatever reads a named pipe may wait without end
			return fmt.Errorf("output %q is neither a file nor a directory", name)
		}
	}
	for _, name := range d.task.Outputs {
		if !fresh() {
			return ErrStale
		}
		if slices.Contains(d.task.Inputs, name) {
			if err := d.setAside(name); err != nil {
				return fmt.Errorf("keeping what output %q replaces: %w", name, err)
			}
		}
		if err := d.move(name); err != nil {
			return fmt.Errorf("publishing output %q: %w", name, err)
		}
	}
	if !fresh() {
		return ErrStale
	}
	return nil
}

// PublishLeft publishes those outputs that an attempt has left which ended with an exit status other than 0. A POST
// script is to see them, and may say that the task has succeeded, as with DAGMan. To repeat it does no harm.
func PublishLeft(run string, t *execution.Task) error {
	left := *t
	d, err := taskDir(run, &left, unix.AT_FDCWD)
	if err != nil {
		return err
	}
	left.Outputs = nil
	for _, name := range t.Outputs {
		if info, err := os.Lstat(d.Path + "/" + name); err == nil && (info.Mode().IsRegular() || info.IsDir()) {
			left.Outputs = append(left.Outputs, name)
		}
	}
	return d.Publish(func() bool { return true })
}

// move renames one output to its place in D/data. What stands in the way is dealt with only when the rename fails,
// which it hardly ever does: a directory that is missing is made, one that is there is removed, and one that the task
// made read-only is unlocked for the move.
func (d TaskDir) move(name string) error {
	from, to := d.Path+"/"+name, d.run+"/"+DataDir+"/"+name
	err := syscall.Rename(from, to)
	switch err {
	case nil:
		return nil
	case syscall.ENOENT:
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
	case syscall.ENOTEMPTY, syscall.EEXIST, syscall.EISDIR, syscall.ENOTDIR: // directories are not replaced by renaming
		if err := atomicfile.RemoveAll(to); err != nil {
			return err
		}
	case syscall.EACCES:
		mode, ok := unlock(from)
		if !ok {
			return err
		}
		if err := d.move(name); err != nil {
			return err
		}
		return syscall.Chmod(to, mode)
	default:
		return err
	}
	return syscall.Rename(from, to)
}

// unlock makes a directory writable that its task made read-only, and returns the mode that it had: only root can give
// a read-only directory another parent, because its entry ".." changes.
func unlock(dir string) (mode uint32, ok bool) {
	var st syscall.Stat_t
	if syscall.Lstat(dir, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFDIR || st.Mode&0o200 != 0 {
		return 0, false
	}
	mode = st.Mode & 0o7777
	return mode, syscall.Chmod(dir, mode|0o200) == nil
}

// write writes a small file of ours into the directory, in place of what has its name there.
func (d TaskDir) write(name string, content []byte) error {
	_ = syscall.Unlink(d.Path + "/" + name) // mostly there is none
	fd, err := d.create(name)
	if err != nil {
		return err
	}
	_, err = syscall.Write(fd, content)
	return errors.Join(err, syscall.Close(fd))
}

// Sees reports whether tasks can work in a job's run's directory from here.
func Sees(j *execution.Job) bool {
	const all = 4 | 2 | 1 // R_OK, W_OK, X_OK
	return syscall.Access(j.Dir, all) == nil && syscall.Access(j.Dir+"/"+DataDir, all) == nil &&
		(j.Mark == "" || j.Mark == Mark(j.Dir))
}

// Mark tells a run's directory from what has the same name on another machine, such as the directory of another run. It
// is the same wherever most file systems are mounted; where it differs, files travel although they need not. It is
// empty if there is no such directory.
func Mark(run string) string {
	var dir, data syscall.Stat_t
	if syscall.Stat(run, &dir) != nil || syscall.Stat(run+"/"+DataDir, &data) != nil {
		return ""
	}
	return fmt.Sprintf("%d/%d", dir.Ino, data.Ino)
}
