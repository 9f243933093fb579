package executor

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/corral-pilot/corral/internal/decide/execution"
)

// Pack removes the directory of a completed task if it contains nothing that the task made, which is true of most
// tasks: the result of such a task contains all information about it. Pack reports whether the directory was removed. A
// directory that contains anything else, such as a line on stderr, remains unchanged.
//
// While a task runs, its directory exists, so that users can inspect it, and so that all attempts that may still be
// running can be found if the journal is damaged.
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
		_ = syscall.Rmdir(d.Path + "/" + folder) // if a folder is not empty, the directory is also kept
	}
	if unix.Unlinkat(d.at, d.name, unix.AT_REMOVEDIR) == nil {
		return true
	}
	d.restore(stdout, stderr, linked)
	return false
}

// silent reports whether the task has written nothing to its streams. A stream file that was removed, or published as
// an output, counts as empty.
func (d TaskDir) silent() bool {
	var st unix.Stat_t
	stdout, stderr := d.task.Streams()
	empty := func(name string) bool {
		err := unix.Fstatat(d.at, d.name+"/"+name, &st, unix.AT_SYMLINK_NOFOLLOW)
		return err == unix.ENOENT || err == nil && st.Size == 0 && st.Mode&unix.S_IFMT == unix.S_IFREG
	}
	return empty(stdout) && (stderr == stdout || empty(stderr))
}

// unlinkInputs removes the links to inputs, and returns the names that were links: a file that a task put in place of a
// link belongs to the task.
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

// restore recreates what Pack has removed from a directory that turned out to contain more, so that users find it as
// the task left it.
func (d TaskDir) restore(stdout, stderr string, linked []string) {
	for _, name := range linked {
		_ = d.Link(name) // for users; an input that has since been removed does not matter now
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

// folders lists the folders that furnish created for a task's files, the deepest first.
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
	slices.Reverse(all) // in sorted order the contents of a folder follow it
	return all
}
