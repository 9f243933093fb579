package profile

import "github.com/corral-pilot/corral/workflow/profile/trace"

// Traced converts a trace to a sample; run is used as its run if the trace names none. The sample's level in a workflow
// and the type of its host are unknown. The caller must check whether the command succeeded.
//
// Input is the number of bytes that were read at least once, as trace.Trace.Distinct computes it, and not the total
// size of the declared inputs as for a workflow. So for a task that reads nothing twice, Read and Input are equal.
func Traced(t *trace.Trace, run string) Sample {
	s := Sample{Subject: Subject{Transformation: t.Transformation, Level: AllLevels}, Run: run, ID: t.ID}
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

// AddTrace adds to a sample the measurements that only a trace of its task contains: the peak of the address space and,
// in mode io, how much of its input the task read, which replaces the size of the input.
func (s *Sample) AddTrace(t *trace.Trace) {
	s.Values.Set(Virtual, float64(t.Virtual()))
	if distinct, ok := t.Distinct(); ok {
		s.Values.Set(Input, float64(distinct))
		s.Values.Set(Read, float64(t.Bytes().Read)) // measured in the same way as Input, so that their ratio is right
	}
}
