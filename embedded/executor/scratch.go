package executor

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/corral-pilot/corral/internal/kit/atomicfile"
)

// A scratch lends directories for temporary files, an empty one to each task that runs: what a task
// leaves there must neither meet the next one nor fill the disk of a worker that stays for days.
type scratch struct {
	base string // a directory of this worker alone; empty: none is lent

	mu   sync.Mutex // guards following
	free []tmpDir   // empty
	made int
}

// A tmpDir is a directory for temporary files. While it is empty its time of modification is 1970, which the kernel
// changes with the first file that a task makes: one system call tells whether there is anything to remove.
type tmpDir struct {
	path    string           // empty: there is none
	fd      int              // of it, open
	changed syscall.Timespec // the time of that change to 1970, which nobody can set
}

// emptied makes path, an empty directory, one that can be lent.
func emptied(path string) (d tmpDir, ok bool) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return tmpDir{path: path, fd: -1}, false
	}
	var st syscall.Stat_t
	ok = syscall.UtimesNano(path, make([]syscall.Timespec, 2)) == nil && syscall.Fstat(fd, &st) == nil
	return tmpDir{path, fd, st.Ctim}, ok
}

// untouched reports whether nothing was made in the directory since it was lent.
func (d tmpDir) untouched() bool {
	var st syscall.Stat_t
	return syscall.Fstat(d.fd, &st) == nil && st.Mtim == syscall.Timespec{} && st.Ctim == d.changed
}

// take returns an empty directory, none if none can be had; the task then makes its temporary files in its own. A
// directory that was given back is lent again: to make one costs more than to empty one that is mostly empty.
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
	if err := atomicfile.RemoveAll(path); err != nil { // of an instance that died
		return tmpDir{}
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return tmpDir{}
	}
	d, _ := emptied(path)
	return d
}

// give takes d back. One that cannot be emptied is left to whoever removes base.
func (s *scratch) give(d tmpDir) {
	if d.path == "" {
		return
	}
	if !d.untouched() {
		_ = syscall.Close(d.fd) // the task may have put another in its place
		if Empty(d.path) != nil {
			return
		}
		d, _ = emptied(d.path) // without the times it is looked through again
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, d)
}

// close closes the directories that are lent to nobody.
func (s *scratch) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.free {
		_ = syscall.Close(d.fd)
	}
	s.free = nil
}

// Empty removes all that is in dir, mostly nothing.
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
