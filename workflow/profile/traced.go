package profile

import "github.com/corral-pilot/corral/workflow/profile/trace"

// Traced returns the sample that a trace is; run stands for its run if it names none. Its level in a workflow is not
// known, nor on which type of host it ran. Whether the command ended well is the caller's to look at.
//
// The input is what was read at least once, as trace.Trace.Distinct tells it, and not the sizes of declared inputs as
// with a workflow: so a task that reads nothing twice has as much read as input.
func Traced(t *trace.Trace, run string) Sample {
	s := Sample{Task: Task{Transformation: t.Transformation, Level: AllLevels}, Run: run, ID: t.ID}
	if t.Run != "" {
		s.Run = t.Run
	}
	sum := t.Bytes()
	for _, x := range []struct {
		m     Metric
		value float64
	}{
		{Runtime, t.Runtime().Seconds()}, {CPU, t.CPU().Seconds()}, {Memory, float64(t.Peak())},
		{Read, float64(sum.Read)}, {Written, float64(sum.Written)},
	} {
		s.Values.Set(x.m, x.value)
	}
	s.AddTrace(t)
	return s
}

// AddTrace adds to a sample what a trace of its task tells and nothing else does: its address space, and in mode io
// what of its input it read, in place of how large that is.
func (s *Sample) AddTrace(t *trace.Trace) {
	s.Values.Set(Virtual, float64(t.Virtual()))
	if distinct, ok := t.Distinct(); ok {
		s.Values.Set(Input, float64(distinct))
		s.Values.Set(Read, float64(t.Bytes().Read)) // the same bytes, for their ratio
	}
}
