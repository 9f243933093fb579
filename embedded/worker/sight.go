package worker

import (
	"sync"
	"time"

	"github.com/corral-pilot/corral/embedded/executor"
	"github.com/corral-pilot/corral/internal/execution"
)

// sightLasts is how long a run's directory that was seen counts as seen: many tasks of a millisecond, and too short for
// a person to mount something else there and start tasks.
const sightLasts = time.Second

// A sight remembers which run's directory was seen last. Its methods may be called from any goroutine.
type sight struct {
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
		return false
	}
	s.dir, s.mark, s.until = j.Dir, j.Mark, now.Add(sightLasts)
	return true
}
