package executor

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/corral-pilot/corral/internal/disk"
)

// A scratch lends directories for temporary files, an empty one to each task that runs: what a task
// leaves there must neither meet the next one nor fill the disk of a worker that stays for days.
type scratch struct {
	base string // a directory of this worker alone; empty: none is lent

	mu   sync.Mutex // guards following
	free []string   // empty directories
	made int
}

// take returns an empty directory, "" if none can be had; the task then makes its temporary files in its own directory.
// A directory that was given back is lent again: to make one costs more than to empty one that is mostly empty.
func (s *scratch) take() string {
	if s.base == "" {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		dir := s.free[n-1]
		s.free = s.free[:n-1]
		return dir
	}
	s.made++
	dir := filepath.Join(s.base, strconv.Itoa(s.made))
	if err := disk.RemoveAll(dir); err != nil { // of an instance that died
		return ""
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return ""
	}
	return dir
}

// give takes dir back. One that cannot be emptied is left to whoever removes base.
func (s *scratch) give(dir string) {
	if dir == "" || Empty(dir) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, dir)
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
		if err := disk.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
