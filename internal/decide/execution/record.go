package execution

import (
	"time"

	"github.com/corral-pilot/corral"
)

// A Record is one thing that happened to a run: one line of its journal. One of its parts is set, or none in a
// record that tests whether the journal can be written. Tasks are named by their index in the workflow;
// worker names stand in full, so that a record can be read without those before it. Journals outlive versions
// of corrald: the JSON names stay.
type Record struct {
	At       Msec        `json:"t"`
	Assigned *Assignment `json:"assigned,omitempty"`
	Finished *Outcome    `json:"finished,omitempty"`
	Returned *Giveback   `json:"returned,omitempty"`
	Gap      *Gap        `json:"gap,omitempty"`
	Met      *Meeting    `json:"met,omitempty"`
	CPUs     int         `json:"cpus,omitempty"` // registered at once: the maximum so far
	Script   *ScriptEnd  `json:"script,omitempty"`
	Resumed  bool        `json:"resumed,omitempty"` // failed tasks have all their retries again
	Added    *Addition   `json:"added,omitempty"`
	Closed   bool        `json:"closed,omitempty"` // nothing is added any more

	// Requests about single tasks.
	Retried   []int32       `json:"retried,omitempty"` // as if the run were resumed for these
	Cancelled *Cancellation `json:"cancelled,omitempty"`
}

// Msec is an instant in milliseconds since 1970, UTC; 0 means none. Processor times are in milliseconds, too.
type Msec int64

// ToMsec returns an instant in the form of records.
func ToMsec(t time.Time) Msec {
	if t.IsZero() {
		return 0
	}
	return Msec(t.UnixMilli())
}

// Time returns the instant, the zero time for none.
func (m Msec) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m)).UTC()
}

func (m Msec) sub(from Msec) time.Duration { return time.Duration(m-from) * time.Millisecond }
func (m Msec) add(wait time.Duration) Msec { return m + Msec(wait.Milliseconds()) }

// An Assignment records that a worker is about to be sent a job, and what the job consists of.
type Assignment struct {
	Seq    int64  `json:"q"`
	Worker string `json:"w"`
	Parts  []Part `json:"p"`
}

// A Part is one task of a job, and the number of the attempt that the job makes at it.
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
	Way     *Way     `json:"way,omitempty"` // of its files; nil: they did not travel
	Changed []string `json:"ch,omitempty"`  // inputs, see Result.Changed
}

// Used is the resources that an attempt used, as far as they were measured.
type Used struct {
	CPU     Msec   `json:"c,omitempty"`   // user and system
	Sys     Msec   `json:"cs,omitempty"`  // of that, system; 0 in older records
	RSSKiB  int64  `json:"m,omitempty"`   // largest
	Read    int64  `json:"rd,omitempty"`  // bytes
	Written int64  `json:"wr,omitempty"`  // bytes
	Source  Source `json:"src,omitempty"` // see Usage.MeasuredBy
}

// A Way is a Travel in the form of records: In lies before Started, Out after Ended.
type Way struct {
	In    Msec  `json:"in,omitempty"`
	Out   Msec  `json:"out,omitempty"`
	Bytes int64 `json:"n,omitempty"`
}

// mostBytes exceeds the bytes of any task, and the bytes of all tasks can be added up without overflow.
const mostBytes = 1 << 42

// mostTime exceeds the time of any transfer, and two of them can be added without overflow.
const mostTime = 366 * 24 * time.Hour

// way returns a Travel in the form of records, nil for none. It is bounded, because it is reported by a worker, which
// is not trusted.
func (t Travel) way() *Way {
	if t == (Travel{}) {
		return nil
	}
	ms := func(d time.Duration) Msec {
		return Msec(min(max(0, d), mostTime).Round(time.Millisecond).Milliseconds())
	}
	return &Way{In: ms(t.In), Out: ms(t.Out), Bytes: min(max(0, t.Bytes), mostBytes)}
}

// ToOutcome returns a result in the form of records.
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

// Result returns the result that the outcome was made of, with the precision of records.
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

// ran is how long the attempt ran; 0 if it never started.
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
	Exit    int    `json:"x,omitempty"`   // exit status; -N if it died of signal N, -1 if it could not be started
	Reason  string `json:"why,omitempty"` // why it is not 0, in one sentence
	Started Msec   `json:"b"`
	Ended   Msec   `json:"e"`
}

// A Giveback names jobs that no worker has any more.
type Giveback struct {
	Seqs    []int64 `json:"q"`
	Started bool    `json:"started,omitempty"` // they may have been running
	Until   Msec    `json:"u,omitempty"`       // they ran until then at most; 0: until the record
	Reason  string  `json:"why,omitempty"`
}

// A Meeting records a worker whose number of cpus was not known before.
type Meeting struct {
	Worker string `json:"w"`
	CPUs   int    `json:"c"`
}

// A Gap stands where a damaged piece of the journal was cut out. Records may be missing there, so numbers that they may
// have used are never used again.
type Gap struct {
	Seq    int64  `json:"q"` // no job before the gap has a higher number
	Floors []Part `json:"p"` // the highest attempt found on disk, for tasks that have one
}
