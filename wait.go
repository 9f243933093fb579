package corral

import (
	"slices"
	"time"
)

// A Wait records the time for which an attempt of a given shape waited in a site's queue. The record is kept even when
// the attempt's glidein and site are removed.
type Wait struct {
	Site        string    `json:"site"`                    // its name at that time; another site may have this name now
	Queue       string    `json:"queue,omitempty"`         // requested queue; empty: the default one
	Default     string    `json:"default_queue,omitempty"` // the site's default as known now
	Account     string    `json:"account,omitempty"`       // of the glidein, or else the site's; same for the next two
	QOS         string    `json:"qos,omitempty"`
	Constraint  string    `json:"constraint,omitempty"`
	Hosts       int       `json:"hosts"`
	CPUs        int       `json:"cpus"`                 // per host
	MemoryMiB   int       `json:"memory_mib,omitempty"` // per host; 0: the site's default
	GPUs        int       `json:"gpus,omitempty"`       // per host
	Walltime    Seconds   `json:"walltime_s"`
	SubmittedAt time.Time `json:"submitted_at"`
	StartedAt   time.Time `json:"started_at,omitzero"`   // zero: it never started, or not yet
	WorkersAt   time.Time `json:"workers_at,omitzero"`   // when its first worker registered; zero: never, or not yet
	CancelledAt time.Time `json:"cancelled_at,omitzero"` // when it was last asked to end; zero: never
	EndedAt     time.Time `json:"ended_at,omitzero"`     // zero: not ended
	Outcome     Outcome   `json:"outcome,omitempty"`
}

// WalltimeClasses are the upper bounds of the classes of walltimes whose waits are alike: batch systems backfill short
// jobs. The last class has no bound. (On KTH-SP2, jobs of up to 8 processors wait 60 s in the median if they request at
// most 15 minutes, and 5,760 s if they request more than 4 hours.)
var WalltimeClasses = []Seconds{Seconds(15 * time.Minute), Seconds(time.Hour), Seconds(4 * time.Hour)}

// WalltimeClass returns the number of a walltime's class, from 0.
func WalltimeClass(walltime Seconds) int {
	class, _ := slices.BinarySearch(WalltimeClasses, walltime)
	return class
}

// Waited returns the time for which the attempt waited until it started. The wait of an attempt that did not start is
// censored: the wait would have been longer than the time until the attempt's end, or until now.
func (w Wait) Waited(now time.Time) (d time.Duration, censored bool) {
	switch {
	case !w.StartedAt.IsZero():
		return max(0, w.StartedAt.Sub(w.SubmittedAt)), false
	case !w.EndedAt.IsZero():
		return max(0, w.EndedAt.Sub(w.SubmittedAt)), true
	}
	return max(0, now.Sub(w.SubmittedAt)), true
}

// Unseen reports whether the attempt's wait is unknown: the attempt started and ended between two polls of the queue,
// or was lost.
func (w Wait) Unseen() bool {
	return w.StartedAt.IsZero() && !slices.Contains([]Outcome{"", OutcomeRemoved, OutcomeFailed}, w.Outcome)
}

// A Quantile is the time within which a given share of attempts started. AtLeast means that too few attempts started,
// so that the quantile exceeds Wait.
type Quantile struct {
	Wait    Seconds `json:"wait_s"`
	AtLeast bool    `json:"at_least,omitempty"`
}

// WaitStats summarize the waits of attempts of one shape in one queue.
type WaitStats struct {
	Queue    string   `json:"queue,omitempty"`
	Hosts    int      `json:"hosts"`
	CPUs     int      `json:"cpus"` // per host
	Walltime Seconds  `json:"walltime_s"`
	Count    int      `json:"count"`    // accepted attempts whose wait is known
	Censored int      `json:"censored"` // of these, attempts that did not start and would have waited longer
	Median   Quantile `json:"median"`
	P90      Quantile `json:"p90"`
	Max      Seconds  `json:"max_s"` // of the attempts that started
}
