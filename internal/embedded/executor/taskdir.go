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
	"github.com/corral-pilot/corral/internal/kit/wrap"
)

// Names in the directories of runs and attempts.
const (
	DataDir    = "data"
	TasksDir   = "tasks"
	RecordFile = "record.json"
)

// ErrStale reports that the worker may no longer publish.
var ErrStale = errors.New("the worker had no answer from its dispatcher for longer than its lease")

// A TaskDir is the directory of one attempt of a task: D/tasks/ID.ATTEMPT. Its methods use plain system calls and no
// path functions of the standard library: they run for every task, and in a task of a millisecond such functions would
// take most of the time.
type TaskDir struct {
	run  string // D
	Path string
	at   int    // descriptor of an open directory; AT_FDCWD: none
	name string // name of Path relative to at
	task *execution.Task
}

// furnish creates a fresh directory, makes the inputs visible in it, and creates the directories for outputs, so that
// the task need not create them. Its errors are sentences about the task.
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

// BareTaskDir creates a fresh directory without inputs.
func BareTaskDir(run string, t *execution.Task) (TaskDir, error) {
	d, err := taskDir(run, t, unix.AT_FDCWD)
	if err == nil {
		err = d.make()
	}
	return d, err
}

// taskDir describes the directory without creating it; tasks is a descriptor of D/tasks, or AT_FDCWD.
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

// checkNames refuses names that lead out of the intended directories. The workflow was checked when the run was
// created, but a worker does not rely on that, because its jobs come over the network.
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

// make creates the directory itself. An existing directory was left by a worker instance that died while it ran the
// same attempt; it is removed with its contents.
func (d *TaskDir) make() error {
	err := syscall.Mkdirat(d.at, d.name, 0o777)
	switch err {
	case syscall.ENOENT, syscall.ESTALE: // the first task of the run; or the open directory has been removed
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

// parents creates the parent directories of name below the task's directory.
func (d TaskDir) parents(name string) error {
	if !strings.Contains(name, "/") {
		return nil
	}
	return wrap.Errorf(os.MkdirAll(filepath.Dir(d.Path+"/"+name), 0o777), "making the directory of %q", name)
}

// create opens a new file of the task for writing without following links: an input is a link, and must not be written
// to.
func (d TaskDir) create(name string) (int, error) {
	if err := d.parents(name); err != nil {
		return -1, err
	}
	const mode = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_TRUNC | syscall.O_NOFOLLOW | syscall.O_CLOEXEC
	fd, err := syscall.Openat(d.at, d.name+"/"+name, mode, 0o666)
	return fd, wrap.Errorf(err, "creating %q", name)
}

// stdio opens the task's standard input, output and error; null is used as stdin if the task names no file.
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

// closeStdio closes the files that stdio opened.
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

// Publish renames the outputs into D/data, if all are present and while fresh reports that this worker may publish;
// otherwise it returns ErrStale. All outputs are checked first, so that a task that lacks one publishes none. An output
// left by an earlier attempt is replaced. fresh is also called at the end, because a result that is too late must not
// count.
func (d TaskDir) Publish(fresh func() bool) error {
	var st syscall.Stat_t
	for _, name := range d.task.Outputs {
		if err := syscall.Lstat(d.Path+"/"+name, &st); err != nil {
			return fmt.Errorf("output %q is missing: %w", name, err)
		}
		switch st.Mode & syscall.S_IFMT {
		case syscall.S_IFREG, syscall.S_IFDIR:
		case syscall.S_IFLNK:
			return fmt.Errorf("output %q is a symbolic link, which would break when published", name)
		default: // reading from a named pipe may block indefinitely
			return fmt.Errorf("output %q is neither a file nor a directory", name)
		}
	}
	for _, name := range d.task.Outputs {
		if !fresh() {
			return ErrStale
		}
		if slices.Contains(d.task.Inputs, name) {
			if err := d.setAside(name); err != nil {
				return fmt.Errorf("saving the file that output %q replaces: %w", name, err)
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

// PublishLeft publishes the outputs left by an attempt that ended with a nonzero exit status. A POST script is meant to
// see them, and may declare the task successful, as in DAGMan. Repeating the call is harmless.
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

// move renames one output to its place in D/data. Obstacles are handled only when the rename fails, which is rare: a
// missing directory is created, an existing directory at the destination is removed, and a directory that the task made
// read-only is made writable for the move.
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
	case syscall.ENOTEMPTY, syscall.EEXIST, syscall.EISDIR, syscall.ENOTDIR: // rename does not replace directories
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

// unlock makes a read-only directory of a task writable, and returns its previous mode: only root can move a read-only
// directory to another parent, because its entry ".." changes.
func unlock(dir string) (mode uint32, ok bool) {
	var st syscall.Stat_t
	if syscall.Lstat(dir, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFDIR || st.Mode&0o200 != 0 {
		return 0, false
	}
	mode = st.Mode & 0o7777
	return mode, syscall.Chmod(dir, mode|0o200) == nil
}

// write writes a small file of the executor into the directory and replaces any existing file with that name.
func (d TaskDir) write(name string, content []byte) error {
	_ = syscall.Unlink(d.Path + "/" + name) // usually there is none
	fd, err := d.create(name)
	if err != nil {
		return err
	}
	_, err = syscall.Write(fd, content)
	return errors.Join(err, syscall.Close(fd))
}

// Sees reports whether tasks on this machine can work in the run's directory of a job.
func Sees(j *execution.Job) bool {
	const all = 4 | 2 | 1 // R_OK, W_OK, X_OK
	return syscall.Access(j.Dir, all) == nil && syscall.Access(j.Dir+"/"+DataDir, all) == nil &&
		(j.Mark == "" || j.Mark == Mark(j.Dir))
}

// Mark identifies a run's directory, to distinguish it from a directory with the same name on another machine, such as
// that of another run. On most file systems the mark is the same on every machine; if it differs, files are transferred
// unnecessarily. The mark is empty if the directory does not exist.
func Mark(run string) string {
	var dir, data syscall.Stat_t
	if syscall.Stat(run, &dir) != nil || syscall.Stat(run+"/"+DataDir, &data) != nil {
		return ""
	}
	return fmt.Sprintf("%d/%d", dir.Ino, data.Ino)
}
