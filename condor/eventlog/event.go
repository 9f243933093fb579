// Package eventlog reads the logs in which HTCondor records the events of jobs. An [Event] is one record; a [File]
// follows a log that is still being written, and a [Reader] reads any log.
//
// An event log is text. Each record has a header with the kind of event, the job and the time, a body of lines that
// depend on the kind and version, and a final line "...". The log is read while it is written, and crashes and full
// disks truncate records. Therefore the reader accepts a record only with its final line, takes the header of the next
// record as the end of a truncated one, and continues after any other text, which it returns as a [BadRecord]. Unknown
// kinds of events are passed on unchanged.
package eventlog

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/condor/classad"
)

// A JobID names a job in its schedd's queue: the cluster of one submission, and the process in it.
type JobID struct {
	Cluster, Proc int
}

func (id JobID) String() string { return fmt.Sprintf("%d.%d", id.Cluster, id.Proc) }

// An Event is one record of an event log. The same event may be written twice, for example after a restart of the
// schedd: a consumer must reach the same state if an event is repeated.
type Event struct {
	Number int // HTCondor's number of the kind of event
	Job    JobID
	Time   time.Time
	Detail any    // one of the types below, as a value; nil for unknown kinds
	Raw    string // the whole record unchanged, without its final line
}

// Details of the events that matter for following jobs. Hosts and addresses are in HTCondor's notation; reasons are in
// its own words, and may be empty.
type (
	// Submitted means that the job is in the queue (event 0).
	Submitted struct{ Host string }
	// Executing means that the job was started on a worker (1). Slot is empty in logs of old versions.
	Executing struct{ Host, Slot string }
	// Evicted means that the job left its worker before its end, and is idle again (4).
	Evicted struct{ Reason string }
	// Terminated means that the job ended by itself (5): with a return value, or by a signal if Signal is not 0.
	// Received and Sent are the bytes of its files, as seen from the worker.
	Terminated struct {
		ReturnValue, Signal int
		Received, Sent      int64
	}
	// ShadowException means that the schedd's side of a running job failed (7); the job is idle again.
	ShadowException struct{ Message string }
	// Aborted means that the job was removed from the queue (9).
	Aborted struct{ Reason string }
	// Held means that the job waits to be released (12). Code and Subcode are HoldReasonCode and HoldReasonSubCode.
	Held struct {
		Reason        string
		Code, Subcode int
	}
	// ReconnectFailed means that the schedd lost the worker and did not reach it again (24); the job is idle again.
	ReconnectFailed struct{ Reason, Worker string }
	// Transferring means that the transfer of the job's input or output files began or ended (40).
	Transferring struct{ Output, Done bool }
	// JobAd has attributes of the job at the time of the preceding event (28).
	JobAd struct{ Ad classad.Ad }
)
