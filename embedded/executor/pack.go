package executor

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// Pack removes the directory of a task that is done, if there is nothing in it that the task made: what is to be known
// of such a task is in its result, and most tasks are such ones. It reports whether the directory is gone. One that has
// more, a line on stderr say, stays as it is.
//
// While a task runs it has its directory, so that a person can look on, and so that whoever finds a damaged journal
// finds every attempt that may still run.
func (d TaskDir) Pack() bool {
	if !d.silent() {
		return false
	}
	stdout, stderr := d.task.Streams()
	_ = unix.Unlinkat(d.at, d.name+"/"+stdout, 0)
	if stderr != stdout {
		_ = unix.Unlinkat(d.at, d.name+"/"+stderr, 0)
	}
	linked := d.unlinkInputs()
	for _, folder := range folders(d.task) {
		_ = syscall.Rmdir(d.Path + "/" + folder) // one that is not empty keeps the directory, too
	}
	if unix.Unlinkat(d.at, d.name, unix.AT_REMOVEDIR) == nil {
		return true
	}
	d.restore(stdout, stderr, linked)
	return false
}

// silent reports whether the task has written nothing to its streams. One that it removed, or that was published as an
// output, is no trace of it.
func (d TaskDir) silent() bool {
	var st unix.Stat_t
	stdout, stderr := d.task.Streams()
	empty := func(name string) bool {
		err := unix.Fstatat(d.at, d.name+"/"+name, &st, unix.AT_SYMLINK_NOFOLLOW)
		return err == unix.ENOENT || err == nil && st.Size == 0 && st.Mode&unix.S_IFMT == unix.S_IFREG
	}
	return empty(stdout) && (stderr == stdout || empty(stderr))
}

// unlinkInputs removes the links to inputs, and returns the names of those that were links: a file that a task put in
// place of one is its own.
func (d TaskDir) unlinkInputs() (linked []string) {
	var st syscall.Stat_t
	for _, name := range d.task.Inputs {
		at := d.Path + "/" + name
		if syscall.Lstat(at, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFLNK && syscall.Unlink(at) == nil {
			linked = append(linked, name)
		}
	}
	return linked
}

// restore puts back what Pack has removed of a directory that turned out to have more: a person finds it as the task
// left it.
func (d TaskDir) restore(stdout, stderr string, linked []string) {
	for _, name := range linked {
		_ = d.Link(name) // for people; an input that is gone since is not missing any more
	}
	for _, name := range d.task.Outputs {
		_ = d.parents(name)
	}
	for _, name := range []string{stdout, stderr} {
		if slices.Contains(d.task.Outputs, name) {
			continue // it was published
		}
		if fd, err := d.create(name); err == nil {
			_ = syscall.Close(fd)
		}
	}
}

// folders lists the folders that furnish made for a task's files, the deepest first.
func folders(t *execution.Task) (all []string) {
	stdout, stderr := t.Streams()
	for _, names := range [][]string{t.Inputs, t.Outputs, {stdout, stderr}} {
		for _, name := range names {
			if !strings.Contains(name, "/") {
				continue
			}
			for at := filepath.Dir(filepath.Clean(name)); at != "."; at = filepath.Dir(at) {
				all = append(all, at)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	all = slices.Compact(all)
	slices.Reverse(all) // what is in a folder follows it in order
	return all
}
