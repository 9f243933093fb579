package corral

import "fmt"

// A Load is how many attempts a site has.
type Load struct {
	Queued  int // asked for, and not running: also those that the site has not answered yet
	Running int
}

// Add counts a job, if it is an attempt that is alive.
func (l Load) Add(j Job) Load {
	switch {
	case j.Kind != PilotJob || !j.Live():
	case j.State == JobRunning:
		l.Running++
	default:
		l.Queued++
	}
	return l
}

// Without takes back what Add counted.
func (l Load) Without(j Job) Load {
	n := Load{}.Add(j)
	return Load{Queued: l.Queued - n.Queued, Running: l.Running - n.Running}
}

// Full returns the limit that another attempt at the site would break, for people; empty if none would. Beside the
// limits that an administrator set, the number of jobs counts that the batch system takes of one user, once a probe has
// found it out; how many of them run at once is the batch system's affair, for which it has a queue.
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
