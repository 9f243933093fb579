package corral

import "time"

// A Backlog lists the jobs in a batch system's queue, including those of other users if the system shows them.
type Backlog struct {
	Queue      string      `json:"queue"`
	At         time.Time   `json:"at"`
	Processors int         `json:"processors"`       // in working order
	Hidden     int         `json:"hidden,omitempty"` // of these, the number held by jobs that are not shown
	Running    []QueuedJob `json:"running"`          // in no order
	Waiting    []QueuedJob `json:"waiting"`          // for processors, the highest priority first
	Ineligible int         `json:"ineligible"`       // jobs that wait for a time, another job, or a limit
	Notes      []string    `json:"notes,omitempty"`  // gaps in the data, for people
}

// A QueuedJob is one job of a backlog.
type QueuedJob struct {
	Processors int       `json:"processors"`
	Limit      Seconds   `json:"limit_s,omitempty"`   // its walltime; 0: unknown
	Elapsed    Seconds   `json:"elapsed_s,omitempty"` // since its start
	StartsAt   time.Time `json:"starts_at,omitzero"`  // its start, or the planned start if it waits; zero if unknown
}
