package corral

import "time"

// A Backlog lists the jobs in a batch system's queue, including those of other users if the system shows them.
type Backlog struct {
	Queue      string      `json:"queue"`
	At         time.Time   `json:"at"`
	Processors int         `json:"processors"`       // in working order
	Hidden     int         `json:"hidden,omitempty"` // of these, the number held by jobs that are not shown
	Running    []QueuedJob `json:"running"`          // in no order
	Waiting    []QueuedJob `json:"waiting"`          // the highest priority first
	Ineligible int         `json:"ineligible"`       // jobs that are held or wait for a limit
	Notes      []string    `json:"notes,omitempty"`  // gaps in the data, for people

	// Nodes are the working nodes of the queue; empty: not known.
	Nodes        []QueueNode        `json:"nodes,omitempty"`
	Reservations []QueueReservation `json:"reservations,omitempty"`       // of these nodes, until their ends
	Reserved     bool               `json:"reservations_known,omitempty"` // Reservations lists all of them
}

// A QueuedJob is one job of a backlog.
type QueuedJob struct {
	Processors int       `json:"processors"`
	Limit      Seconds   `json:"limit_s,omitempty"`   // its walltime; 0: unknown
	Elapsed    Seconds   `json:"elapsed_s,omitempty"` // since its start
	StartsAt   time.Time `json:"starts_at,omitzero"`  // its start, or the planned start if it waits; zero if unknown

	ID        string    `json:"id,omitempty"`
	Queue     string    `json:"queue,omitempty"`      // in which it waits; empty: the backlog's
	Nodes     int       `json:"nodes,omitempty"`      // on which it runs, or which it requests; 0: unknown
	Whole     bool      `json:"whole,omitempty"`      // shares no node with other jobs
	MemoryMiB int       `json:"memory_mib,omitempty"` // of each node; 0: unknown
	On        []string  `json:"on,omitempty"`         // names of the nodes on which it runs
	NotBefore time.Time `json:"not_before,omitzero"`  // requested begin
	After     []string  `json:"after,omitempty"`      // IDs of the jobs that must end before it starts
	Array     string    `json:"array,omitempty"`      // of a running job, or with the limit that the job waits for
}

// A QueueNode is a node of a queue.
type QueueNode struct {
	Name      string   `json:"name"`
	CPUs      int      `json:"cpus"`
	MemoryMiB int      `json:"memory_mib,omitempty"`
	Held      int      `json:"held,omitempty"`   // cpus that jobs hold, shown or not
	Queues    []string `json:"queues,omitempty"` // that have the node
}

// A QueueReservation is a period in which nodes are kept for maintenance or for other users.
type QueueReservation struct {
	Name        string    `json:"name"`
	From        time.Time `json:"from"`
	To          time.Time `json:"to"`
	Nodes       []string  `json:"nodes"`
	Maintenance bool      `json:"maintenance,omitempty"`
}
