package run

import (
	"time"

	"github.com/corral-pilot/corral/internal/execution"
)

// A record is one line of the journal: one thing that happened to a run. One of its parts is set, or
// none in a record that was only to find out whether it can be written. Tasks are named by their index
// in the workflow; worker names stand in full, so that a line can be read without those before it.
type record struct {
	At       msec        `json:"t"`
	Assigned *assignment `json:"assigned,omitempty"`
	Finished *outcome    `json:"finished,omitempty"`
	Returned *giveback   `json:"returned,omitempty"`
	Gap      *gap        `json:"gap,omitempty"`
	Met      *meeting    `json:"met,omitempty"`
	CPUs     int         `json:"cpus,omitempty"`    // so many were registered at once, more than ever before
	Resumed  bool        `json:"resumed,omitempty"` // failed tasks have all their retries again
}

// msec is an instant in milliseconds since 1970, UTC; 0 is no instant. Of processor time it is simply
// milliseconds.
type msec int64

func toMsec(t time.Time) msec {
	if t.IsZero() {
		return 0
	}
	return msec(t.UnixMilli())
}

func (m msec) time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m)).UTC()
}

func (m msec) sub(from msec) time.Duration { return time.Duration(m-from) * time.Millisecond }

// An assignment says that a worker is about to be sent a job, and what it consists of.
type assignment struct {
	Seq    int64  `json:"q"`
	Worker string `json:"w"`
	Parts  []part `json:"p"`
}

// A part is one task of a job, and the number of the attempt that the job makes at it.
type part struct {
	Task    int32 `json:"i"`
	Attempt int32 `json:"a"`
}

// An outcome is the result of one attempt, as its worker measured it.
type outcome struct {
	Seq     int64            `json:"q"`
	Task    int32            `json:"i"`
	Attempt int32            `json:"a"`
	Status  execution.Status `json:"s"`
	Exit    int              `json:"x,omitempty"`
	Signal  string           `json:"sig,omitempty"`
	Reason  string           `json:"why,omitempty"`
	Worker  string           `json:"w"`
	Started msec             `json:"b"`
	Ended   msec             `json:"e"`
	CPU     msec             `json:"c,omitempty"` // user and system
	RSSKiB  int64            `json:"m,omitempty"` // largest
}

func toOutcome(r execution.Result) *outcome {
	return &outcome{
		Seq: r.Key.Seq, Task: int32(r.Index), Attempt: int32(r.Attempt),
		Status: r.Status, Exit: r.Exit, Signal: r.Signal, Reason: r.Reason,
		Worker: r.Worker, Started: toMsec(r.StartedAt), Ended: toMsec(r.EndedAt),
		CPU: msec((r.UserCPU + r.SysCPU).Milliseconds()), RSSKiB: r.MaxRSSKiB,
	}
}

// ran is how long the attempt ran; 0 if it never started.
func (o *outcome) ran() time.Duration {
	if o.Started == 0 {
		return 0
	}
	return max(0, o.Ended.sub(o.Started))
}

// A giveback names jobs that no worker has any more.
type giveback struct {
	Seqs    []int64 `json:"q"`
	Started bool    `json:"started,omitempty"` // they may have been running
	Reason  string  `json:"why,omitempty"`
}

// A meeting says how many cpus a worker has that was not known before.
type meeting struct {
	Worker string `json:"w"`
	CPUs   int    `json:"c"`
}

// A gap stands where a damaged piece of the journal was cut out. Records may be missing there, so
// numbers that they may have used are never used again.
type gap struct {
	Seq    int64  `json:"q"` // no job before the gap has a higher number
	Floors []part `json:"p"` // the highest attempt found on disk, for tasks that have one
}
