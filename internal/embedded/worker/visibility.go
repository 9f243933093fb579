package worker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/corral-pilot/corral/internal/decide/execution"
	"github.com/corral-pilot/corral/internal/embedded/executor"
)

// sightLasts is the time for which a run's directory counts as visible after a check: long enough for many tasks of a
// millisecond, and too short for a user to mount something else there and start tasks.
const sightLasts = time.Second

// A sight stores the path of the last run's directory that was visible, and that of the last one that was invisible.
// Its methods may be called from any goroutine.
type sight struct {
	unseen atomic.Pointer[string] // the last invisible directory, unless it has been seen since; nil: none

	mu    sync.Mutex // guards the fields below
	dir   string
	mark  string
	until time.Time
}

// sees reports whether tasks on this machine can work in a job's run's directory, now or a moment ago. An invisible
// directory is checked again for each job.
func (s *sight) sees(j *execution.Job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.dir == j.Dir && s.mark == j.Mark && now.Before(s.until) {
		return true
	}
	if !executor.Sees(j) {
		if !s.missed(j) {
			dir := j.Dir // a copy, so that the job is not kept in memory
			s.unseen.Store(&dir)
		}
		return false
	}
	s.dir, s.mark, s.until = j.Dir, j.Mark, now.Add(sightLasts)
	if s.missed(j) {
		s.unseen.Store(nil)
	}
	return true
}

// missed reports whether the run's directory of a job is the last one that was not visible. It does not check the
// directory, and does not block.
func (s *sight) missed(j *execution.Job) bool {
	dir := s.unseen.Load()
	return dir != nil && *dir == j.Dir
}
