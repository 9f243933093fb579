package execution

import (
	"time"

	"github.com/corral-pilot/corral"
)

// A Record is one event of a run: one line of its journal. One of its parts is set, or none in a record that tests
// whether the journal is writable. Tasks are identified by their index in the workflow. Names of workers are written in
// full, so that a record can be read without earlier ones. Journals outlive versions of corrald, so the JSON names must
// not change.
type Record struct {
	At       Msec        `json:"t"`
	Assigned *Assignment `json:"assigned,omitempty"`
	Finished *Outcome    `json:"finished,omitempty"`
	Returned *Giveback   `json:"returned,omitempty"`
	Gap      *Gap        `json:"gap,omitempty"`
	Met      *Meeting    `json:"met,omitempty"`
	CPUs     int         `json:"cpus,omitempty"` // registered at once: the maximum so far
	Script   *ScriptEnd  `json:"script,omitempty"`
	Resumed  bool        `json:"resumed,omitempty"` // failed tasks get all their retries again
	Added    *Addition   `json:"added,omitempty"`
	Closed   bool        `json:"closed,omitempty"` // nothing more can be added

	// Requests about single tasks.
	Retried   []int32       `json:"retried,omitempty"` // as if the run were resumed for these tasks
	Cancelled *Cancellation `json:"cancelled,omitempty"`
}

// Msec is a time in milliseconds since 1970, UTC; 0 means none. It is also used for cpu times in milliseconds.
type Msec int64

// ToMsec converts a time to the form in records.
func ToMsec(t time.Time) Msec {
	if t.IsZero() {
		return 0
	}
	return Msec(t.UnixMilli())
}

// Time returns the time, or the zero time for none.
func (m Msec) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m)).UTC()
}

func (m Msec) sub(from Msec) time.Duration { return time.Duration(m-from) * time.Millisecond }
func (m Msec) add(wait time.Duration) Msec { return m + Msec(wait.Milliseconds()) }

// An Assignment records that a job is about to be sent to a worker, and the parts of the job.
type Assignment struct {
	Seq    int64  `json:"q"`
	Worker string `json:"w"`
	Parts  []Part `json:"p"`
	More   int    `json:"m,omitempty"` // memory of the job, in MiB, if it is more than the workflow requests
}

// A Part is one task of a job, with the number of the attempt.
type Part struct {
	Task    int32 `json:"i"`
	Attempt int32 `json:"a"`
}

// An Outcome is the result of one attempt, as its worker measured it.
type Outcome struct {
	Seq     int64  `json:"q"`
	Task    int32  `json:"i"`
	Attempt int32  `json:"a"`
	Status  Status `json:"s"`
	Cause   Cause  `json:"k,omitempty"`
	Exit    int    `json:"x,omitempty"`
	Signal  string `json:"sig,omitempty"`
	Reason  string `json:"why,omitempty"`
	Worker  string `json:"w"`
	Started Msec   `json:"b"`
	Ended   Msec   `json:"e"`
	Used
	Way     *Way     `json:"way,omitempty"` // transfer of its files; nil: none
	Changed []string `json:"ch,omitempty"`  // inputs, see Result.Changed
}

// Used holds the resources that an attempt used, as far as they were measured.
type Used struct {
	CPU     Msec   `json:"c,omitempty"`   // user and system
	Sys     Msec   `json:"cs,omitempty"`  // system part of CPU; 0 in older records
	RSSKiB  int64  `json:"m,omitempty"`   // largest
	Read    int64  `json:"rd,omitempty"`  // bytes
	Written int64  `json:"wr,omitempty"`  // bytes
	Source  Source `json:"src,omitempty"` // see Usage.MeasuredBy
}

// A Way is a Travel in the form of records: In is before Started, Out is after Ended.
type Way struct {
	In    Msec  `json:"in,omitempty"`
	Out   Msec  `json:"out,omitempty"`
	Bytes int64 `json:"n,omitempty"`
}

// mostBytes exceeds the bytes of any task, but the sum over all tasks does not overflow.
const mostBytes = 1 << 42

// mostTime exceeds the time of any transfer, but the sum of two does not overflow.
const mostTime = 366 * 24 * time.Hour

// way converts a Travel to the form of records; it returns nil for none. It limits the values, because workers, which
// report them, are not trusted.
func (t Travel) way() *Way {
	if t == (Travel{}) {
		return nil
	}
	ms := func(d time.Duration) Msec {
		return Msec(min(max(0, d), mostTime).Round(time.Millisecond).Milliseconds())
	}
	return &Way{In: ms(t.In), Out: ms(t.Out), Bytes: min(max(0, t.Bytes), mostBytes)}
}

// ToOutcome converts a result to the form of records.
func ToOutcome(r Result) *Outcome {
	return &Outcome{
		Seq: r.Key.Seq, Task: int32(r.Index), Attempt: int32(r.Attempt),
		Status: r.Status, Cause: r.Cause, Exit: r.Exit, Signal: r.Signal, Reason: r.Reason,
		Worker: r.Worker, Started: ToMsec(r.StartedAt), Ended: ToMsec(r.EndedAt),
		Used: Used{CPU: Msec((r.UserCPU + r.SysCPU).Milliseconds()), Sys: Msec(r.SysCPU.Milliseconds()),
			RSSKiB: r.MaxRSSKiB, Read: r.ReadBytes, Written: r.WrittenBytes, Source: r.MeasuredBy},
		Way: r.Travel.way(), Changed: r.Changed,
	}
}

// Result converts the outcome back to a result, with the precision of records.
func (o *Outcome) Result(run corral.RunID) Result {
	r := Result{
		Key: Key{run, o.Seq}, Index: int(o.Task), Attempt: int(o.Attempt),
		Status: o.Status, Cause: o.Cause, Exit: o.Exit, Signal: o.Signal, Reason: o.Reason,
		Worker: o.Worker, StartedAt: o.Started.Time(), EndedAt: o.Ended.Time(),
		Usage: Usage{UserCPU: (o.CPU - o.Sys).sub(0), SysCPU: o.Sys.sub(0), MaxRSSKiB: o.RSSKiB, ReadBytes: o.Read,
			WrittenBytes: o.Written, MeasuredBy: o.Source},
		Changed: o.Changed,
	}
	if w := o.Way; w != nil {
		r.Travel = Travel{In: w.In.sub(0), Out: w.Out.sub(0), Bytes: w.Bytes}
	}
	return r
}

// ran returns the runtime of the attempt, or 0 if it never started.
func (o *Outcome) ran() time.Duration {
	if o.Started == 0 {
		return 0
	}
	return max(0, o.Ended.sub(o.Started))
}

// A ScriptEnd records how a script ended.
type ScriptEnd struct {
	Unit    int32  `json:"i"` // see Call
	Post    bool   `json:"post,omitempty"`
	Try     int32  `json:"a"`
	Round   int32  `json:"n,omitempty"`
	Exit    int    `json:"x,omitempty"`   // exit status; -N if signal N killed it, -1 if it could not be started
	Reason  string `json:"why,omitempty"` // reason why it is not 0, in one sentence
	Started Msec   `json:"b"`
	Ended   Msec   `json:"e"`
}

// A Giveback lists jobs that no worker has any more.
type Giveback struct {
	Seqs    []int64 `json:"q"`
	Started bool    `json:"started,omitempty"` // they may have been running
	Until   Msec    `json:"u,omitempty"`       // latest time until which they ran; 0: until the record
	Reason  string  `json:"why,omitempty"`
}

// A Meeting records the number of cpus of a worker for which it was unknown.
type Meeting struct {
	Worker string `json:"w"`
	CPUs   int    `json:"c"`
}

// A Gap replaces a damaged piece that was cut out of the journal. Records may be missing there, so numbers that they
// may have used are never reused.
type Gap struct {
	Seq    int64  `json:"q"` // no job before the gap has a higher number
	Floors []Part `json:"p"` // highest attempt found on disk, for tasks that have one
}
