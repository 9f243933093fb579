package executor

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/corral-pilot/corral/internal/kit/atomicfile"
)

// A scratch provides directories for temporary files, an empty directory for each running task: files that a task
// leaves in its directory must neither affect the next task nor fill the disk of a worker that runs for days.
type scratch struct {
	base string // a directory used by this worker alone; empty: no directories are provided

	mu   sync.Mutex // guards the fields below
	free []tmpDir   // empty directories
	made int
}

// A tmpDir is a directory for temporary files. While it is empty, its modification time is set to 1970; the kernel
// changes it when a task creates the first file, so one system call shows whether there is anything to remove.
type tmpDir struct {
	path    string           // empty: there is no directory
	fd      int              // descriptor of the directory
	changed syscall.Timespec // when the modification time was set to 1970; programs cannot forge it
}

// emptied prepares path, an empty directory, for use.
func emptied(path string) (d tmpDir, ok bool) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return tmpDir{path: path, fd: -1}, false
	}
	var st syscall.Stat_t
	ok = syscall.UtimesNano(path, make([]syscall.Timespec, 2)) == nil && syscall.Fstat(fd, &st) == nil
	return tmpDir{path, fd, st.Ctim}, ok
}

// untouched reports whether no file was created in the directory since take returned it.
func (d tmpDir) untouched() bool {
	var st syscall.Stat_t
	return syscall.Fstat(d.fd, &st) == nil && st.Mtim == syscall.Timespec{} && st.Ctim == d.changed
}

// take returns an empty directory, or an empty tmpDir if none is available; the task then puts its temporary files in
// its own directory. Directories are reused: creating a directory costs more than emptying a used one, which is usually
// empty already.
func (s *scratch) take() tmpDir {
	if s.base == "" {
		return tmpDir{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		d := s.free[n-1]
		s.free = s.free[:n-1]
		return d
	}
	s.made++
	path := filepath.Join(s.base, strconv.Itoa(s.made))
	if err := atomicfile.RemoveAll(path); err != nil { // left by an instance that died
		return tmpDir{}
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return tmpDir{}
	}
	d, _ := emptied(path)
	return d
}

// give takes d back. If it cannot be emptied, it is left to the code that removes base.
func (s *scratch) give(d tmpDir) {
	if d.path == "" {
		return
	}
	if !d.untouched() {
		_ = syscall.Close(d.fd) // the task may have replaced it
		if Empty(d.path) != nil {
			return
		}
		d, _ = emptied(d.path) // if setting the times fails, it is scanned again next time
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, d)
}

// close closes the directories that are not in use.
func (s *scratch) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.free {
		_ = syscall.Close(d.fd)
	}
	s.free = nil
}

// Empty removes all contents of dir, which is usually empty.
func Empty(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := atomicfile.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
