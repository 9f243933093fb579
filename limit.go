package corral

import "fmt"

// A Load counts the attempts at a site.
type Load struct {
	Queued  int // requested but not running, including those that the site has not confirmed
	Running int
}

// Add counts a job if it is a live attempt.
func (l Load) Add(j *Job) Load {
	switch {
	case j.Kind != PilotJob || !j.Live():
	case j.State == JobRunning:
		l.Running++
	default:
		l.Queued++
	}
	return l
}

// Without reverses Add.
func (l Load) Without(j *Job) Load {
	n := Load{}.Add(j)
	return Load{Queued: l.Queued - n.Queued, Running: l.Running - n.Running}
}

// Full describes the limit that another attempt at the site would exceed, or returns "" if it would exceed none. In
// addition to the administrator's limits it applies the batch system's limit on the jobs of one user, if a probe has
// found such a limit. It does not limit the number of jobs that run at the same time: the batch system queues the
// others.
func (s Site) Full(l Load) string {
	live := l.Queued + l.Running
	switch {
	case s.Limits.MaxRunning > 0 && live >= s.Limits.MaxRunning:
		return fmt.Sprintf("limit max_running of site %s: %d of %d attempts wait or run",
			s.Name, live, s.Limits.MaxRunning)
	case s.Facts != nil && s.Facts.MaxSubmit > 0 && live >= s.Facts.MaxSubmit:
		return fmt.Sprintf("limit max_submit of site %s: %d of %d jobs wait or run", s.Name, live, s.Facts.MaxSubmit)
	case s.Limits.MaxQueued > 0 && l.Queued >= s.Limits.MaxQueued:
		return fmt.Sprintf("limit max_queued of site %s: %d of %d attempts wait", s.Name, l.Queued, s.Limits.MaxQueued)
	}
	return ""
}
