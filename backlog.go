package corral

import "time"

// A Backlog lists the jobs in a batch system's queue, of all users whose jobs the system shows.
type Backlog struct {
	Queue      string      `json:"queue"`
	At         time.Time   `json:"at"`
	Processors int         `json:"processors"`       // that work
	Hidden     int         `json:"hidden,omitempty"` // of these, held by jobs that are not shown
	Running    []QueuedJob `json:"running"`          // in no order
	Waiting    []QueuedJob `json:"waiting"`          // for processors, the highest priority first
	Ineligible int         `json:"ineligible"`       // jobs that wait for something else: a time, another job, a limit
	Notes      []string    `json:"notes,omitempty"`  // what could not be seen
}

// A QueuedJob is one of a backlog.
type QueuedJob struct {
	Processors int       `json:"processors"`
	Limit      Seconds   `json:"limit_s,omitempty"`   // its walltime; 0: none is known
	Elapsed    Seconds   `json:"elapsed_s,omitempty"` // since it has started
	StartsAt   time.Time `json:"starts_at,omitzero"`  // or started; of one that waits as planned, if so
}
