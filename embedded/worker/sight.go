package worker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/corral-pilot/corral/embedded/executor"
	"github.com/corral-pilot/corral/internal/decide/execution"
)

// sightLasts is how long a run's directory that was seen counts as seen: many tasks of a millisecond, and too short for
// a person to mount something else there and start tasks.
const sightLasts = time.Second

// A sight remembers which run's directory was seen last, and which was not. Its methods may be called from any
// goroutine.
type sight struct {
	unseen atomic.Pointer[string] // the last one that was not seen, unless it has been since; nil: all were

	mu    sync.Mutex // guards what follows
	dir   string
	mark  string
	until time.Time
}

// sees reports whether tasks can work in a job's run's directory from here, now or a moment ago. One that was not seen
// is looked at again for each job.
func (s *sight) sees(j *execution.Job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.dir == j.Dir && s.mark == j.Mark && now.Before(s.until) {
		return true
	}
	if !executor.Sees(j) {
		if !s.missed(j) {
			dir := j.Dir // the job is not kept
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

// missed reports whether the run's directory of a job is the one that was last looked for in vain. It does not look,
// and waits for nobody who does.
func (s *sight) missed(j *execution.Job) bool {
	dir := s.unseen.Load()
	return dir != nil && *dir == j.Dir
}
