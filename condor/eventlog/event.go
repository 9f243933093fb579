// Package eventlog reads the logs in which HTCondor says what becomes of jobs. An [Event] is one record; a [File]
// follows a log that is still written to, and a [Reader] reads any.
//
// An event log is text: records that end with a line "...", each with a header that says the kind of event, the job and
// the time, and a body in lines that differ from kind to kind and from version to version. It is read while it is
// written, and crashes and full disks cut records short. So the reader takes nothing for a record before the line that
// ends it is there, takes the header of the next record for the end of one that was cut, and goes on after anything
// else, which it returns as a [BadRecord]. Kinds of events that it does not know pass through as they were written.
package eventlog

import (
	"fmt"
	"time"

	"github.com/corral-pilot/corral/condor/classad"
)

// A JobID names a job in its schedd's queue: the cluster that one submission made, and the process in it.
type JobID struct {
	Cluster, Proc int
}

func (id JobID) String() string { return fmt.Sprintf("%d.%d", id.Cluster, id.Proc) }

// An Event is one record of an event log. The same event may be written twice, after a restart of the
// schedd for example: whatever consumes events must reach the same state when one is repeated.
type Event struct {
	Number int // HTCondor's number of the kind of event
	Job    JobID
	Time   time.Time
	Detail any    // one of the types below, as a value; nil for kinds that this package does not know
	Raw    string // the whole record as it was written, without the line that ends it
}

// Details of the events that matter to whoever follows jobs. Hosts and addresses are HTCondor's, in its
// own notation; reasons are its own words, and may be empty.
type (
	// Submitted: the job is in the queue (event 0).
	Submitted struct{ Host string }
	// Executing: the job was started on a worker (1). Slot is empty in logs of old versions.
	Executing struct{ Host, Slot string }
	// Evicted: the job left its worker before it ended, and is idle again (4).
	Evicted struct{ Reason string }
	// Terminated: the job ended by itself (5): with a return value, or by a signal if Signal is not 0. Received and
	// Sent are the bytes of its files, seen from the worker.
	Terminated struct {
		ReturnValue, Signal int
		Received, Sent      int64
	}
	// ShadowException: the schedd's side of a running job failed (7); the job is idle again.
	ShadowException struct{ Message string }
	// Aborted: the job was removed from the queue (9).
	Aborted struct{ Reason string }
	// Held: the job waits for somebody to release it (12). Code and Subcode are HoldReasonCode and
	// HoldReasonSubCode.
	Held struct {
		Reason        string
		Code, Subcode int
	}
	// ReconnectFailed: the schedd lost the worker and did not reach it again (24); the job is idle again.
	ReconnectFailed struct{ Reason, Worker string }
	// Transferring: the job's input files, or its output files, begin their way, or have come (40).
	Transferring struct{ Output, Done bool }
	// JobAd: attributes of the job at the time of the event before (28).
	JobAd struct{ Ad classad.Ad }
)
