package corral

import (
	"slices"
	"time"
)

// A Wait is how long an attempt waited in a site's queue, with its shape. It outlives the attempt's glidein and site.
type Wait struct {
	Site        string    `json:"site"`                    // its name at that time; another site may have it now
	Queue       string    `json:"queue,omitempty"`         // that was asked for; empty: the default one
	Default     string    `json:"default_queue,omitempty"` // the site's, as it is known now
	Account     string    `json:"account,omitempty"`       // of the glidein, else of the site now; so are the next two
	QOS         string    `json:"qos,omitempty"`
	Constraint  string    `json:"constraint,omitempty"`
	Hosts       int       `json:"hosts"`
	CPUs        int       `json:"cpus"`                 // of each host
	MemoryMiB   int       `json:"memory_mib,omitempty"` // of each host; 0: as the site gives it
	GPUs        int       `json:"gpus,omitempty"`       // of each host
	Walltime    Seconds   `json:"walltime_s"`
	SubmittedAt time.Time `json:"submitted_at"`
	StartedAt   time.Time `json:"started_at,omitzero"` // zero: it never has, or not yet
	WorkersAt   time.Time `json:"workers_at,omitzero"` // its first worker was in the cluster; zero: never, or not yet
	EndedAt     time.Time `json:"ended_at,omitzero"`   // zero: it has not
	Outcome     Outcome   `json:"outcome,omitempty"`
}

// Waited returns how long the attempt waited until it started. One that did not start is censored: had it been left
// there, it would have waited longer than until its end, or than until now.
func (w Wait) Waited(now time.Time) (d time.Duration, censored bool) {
	switch {
	case !w.StartedAt.IsZero():
		return max(0, w.StartedAt.Sub(w.SubmittedAt)), false
	case !w.EndedAt.IsZero():
		return max(0, w.EndedAt.Sub(w.SubmittedAt)), true
	}
	return max(0, now.Sub(w.SubmittedAt)), true
}

// Unseen reports whether it is unknown how long the attempt waited: it began between two looks at the queue, or was
// lost.
func (w Wait) Unseen() bool {
	return w.StartedAt.IsZero() && !slices.Contains([]Outcome{"", OutcomeRemoved, OutcomeFailed}, w.Outcome)
}

// A Quantile is the time within which a share of attempts started. AtLeast says that too few have: it is more than
// Wait.
type Quantile struct {
	Wait    Seconds `json:"wait_s"`
	AtLeast bool    `json:"at_least,omitempty"`
}

// WaitStats say how long attempts of one shape waited in one queue.
type WaitStats struct {
	Queue    string   `json:"queue,omitempty"`
	Hosts    int      `json:"hosts"`
	CPUs     int      `json:"cpus"` // of each host
	Walltime Seconds  `json:"walltime_s"`
	Count    int      `json:"count"`    // attempts that the site accepted, of known wait
	Censored int      `json:"censored"` // of these, those that did not start: they would have waited for longer
	Median   Quantile `json:"median"`
	P90      Quantile `json:"p90"`
	Max      Seconds  `json:"max_s"` // of those that started
}
