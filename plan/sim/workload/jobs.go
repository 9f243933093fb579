package workload

import (
	"cmp"
	"context"
	"io"
	"math"
	"slices"
	"time"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan/sim/queue"
)

// A Trace is the contents of a trace file: its jobs, and how many of them lack data.
type Trace struct {
	Header Header
	Jobs   []queue.Job // sorted by submission, the first at 0

	LeftOut int // number of jobs without a known runtime or number of processors: most were cancelled while they waited
	Exact   int // number of jobs without a requested time, which request their runtime
}

// ReadJobs reads a trace of at most 1 GiB, which may be gzip-compressed. A job needs the number of processors that it
// requested or, if that is unknown, the number allocated to it. It runs for the runtime in the trace, and requests the
// time requested there or, if that is unknown, its runtime, but at least a second.
//
// name is the name of the file in errors. Errors are of kind Invalid, with the place name:line, or name if the error
// concerns no line, as for a trace without jobs. If ctx is cancelled, ReadJobs stops and returns the cause.
func ReadJobs(ctx context.Context, r io.Reader, name string) (*Trace, error) {
	t := &Trace{}
	var err error
	t.Header, err = read(ctx, r, name, t.add)
	switch {
	case err != nil:
		return nil, err
	case len(t.Jobs) == 0 && t.LeftOut > 0:
		return nil, corral.ErrorAt(corral.Invalid, name, "none of its %d jobs has a known runtime and number of "+
			"processors", t.LeftOut)
	case len(t.Jobs) == 0:
		return nil, corral.ErrorAt(corral.Invalid, name, "it contains no jobs")
	}
	slices.SortStableFunc(t.Jobs, func(a, b queue.Job) int { return cmp.Compare(a.Submit, b.Submit) })
	first := t.Jobs[0].Submit
	for i := range t.Jobs {
		t.Jobs[i].Submit -= first
	}
	return t, nil
}

// add adds the job of a record.
func (t *Trace) add(r record) {
	processors := r[fieldRequestedProcessors]
	if processors <= 0 {
		processors = r[fieldProcessors]
	}
	if r[fieldRuntime] < 0 || processors < 1 || r[fieldSubmit] < 0 {
		t.LeftOut++
		return
	}
	requested := r[fieldRequestedTime]
	if requested <= 0 {
		requested = r[fieldRuntime]
		t.Exact++
	}
	t.Jobs = append(t.Jobs, queue.Job{
		User: int(r[fieldUser]), Submit: seconds(r[fieldSubmit]), Processors: int(math.Ceil(processors)),
		Requested: seconds(max(1, requested)), Runtime: seconds(r[fieldRuntime]),
	})
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
