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

// A Trace is a list of jobs for a queue, with statistics about their conversion from records.
type Trace struct {
	Header Header
	Jobs   []queue.Job // sorted by submission, the first at 0

	LeftOut int // number of jobs without a known runtime or number of processors: most were cancelled while they waited
	Exact   int // number of jobs without a requested time, which request their runtime
}

// ReadJobs reads a trace as jobs. A job needs the number of processors that it requested or, if that is unknown, the
// number allocated to it. It runs for the runtime in the trace, and requests the time requested there or, if that is
// unknown, its runtime, but at least a second. It returns the errors of Read, and also an error if the trace has no
// jobs.
func ReadJobs(ctx context.Context, r io.Reader, name string) (*Trace, error) {
	t := &Trace{}
	var err error
	t.Header, err = Read(ctx, r, name, func(r Record) error {
		t.add(r)
		return nil
	})
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
func (t *Trace) add(r Record) {
	processors := r[RequestedProcessors]
	if processors <= 0 {
		processors = r[Processors]
	}
	if r[Runtime] < 0 || processors < 1 || r[Submit] < 0 {
		t.LeftOut++
		return
	}
	requested := r[RequestedTime]
	if requested <= 0 {
		requested = r[Runtime]
		t.Exact++
	}
	t.Jobs = append(t.Jobs, queue.Job{
		User: int(r[User]), Submit: seconds(r[Submit]), Processors: int(math.Ceil(processors)),
		Requested: seconds(max(1, requested)), Runtime: seconds(r[Runtime]),
	})
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
