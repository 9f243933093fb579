package profile

import "github.com/corral-pilot/corral/profile/trace"

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
		{Runtime, t.Runtime().Seconds()}, {CPU, t.CPU().Seconds()},
		{Memory, float64(t.Peak())}, {Virtual, float64(t.Virtual())},
		{Read, float64(sum.Read)}, {Written, float64(sum.Written)},
	} {
		s.Values.Set(x.m, x.value)
	}
	if distinct, ok := t.Distinct(); ok {
		s.Values.Set(Input, float64(distinct))
	}
	return s
}
