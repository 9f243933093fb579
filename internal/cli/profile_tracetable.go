package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/plan"
	"github.com/corral-pilot/corral/workflow/profile"
	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// The output shows only the largest entries of a trace's lists. The JSON contains all entries.
const (
	maxFiles     = 10
	rereadFactor = 2       // a file is reported if more than this many times its size is read
	minReread    = 1 << 20 // minimum number of bytes read beyond a file's size that is reported
)

// showTrace prints the activity of a traced command.
func (v profileVerbs) showTrace(t *trace.Trace) error {
	fmt.Fprintf(v.out, "%s: %s, %d process(es), %s of cpu (%.0f %%), %s of memory at most (upper bound)\n",
		t.Transformation, span(t.Runtime()), len(t.Processes)+t.MoreProcs, span(t.CPU()), 100*t.Utilization(),
		inBytes(t.Peak()))
	var err error
	if t.Mode == trace.IO {
		err = kindTable.list(v.printer, kindsOf(t))
		if files := largest(t.Files); len(files) > 0 {
			err = cmp.Or(err, fileTable.list(v.printer, files))
		}
	} else {
		sum := t.Bytes()
		fmt.Fprintf(v.out, "read %s, written %s, by the kernel's count, which has no socket calls\n", inBytes(sum.Read),
			inBytes(sum.Written))
	}
	for _, line := range remarks(t) {
		fmt.Fprintln(v.out, "-", line)
	}
	return err
}

func inBytes(n int64) string { return plan.Bytes(float64(n)) }

// A kindSum is the traffic through descriptors of a kind.
type kindSum struct {
	kind trace.Kind
	trace.Sum
}

// kindsOf returns the sums of the kinds that occur in a trace.
func kindsOf(t *trace.Trace) (all []kindSum) {
	for _, k := range trace.AllKinds {
		if s, ok := t.Kinds[k]; ok {
			all = append(all, kindSum{k, s})
		}
	}
	return all
}

var kindTable = listing[kindSum]{
	id:   func(k kindSum) string { return string(k.kind) },
	none: "no call read or wrote anything",
	columns: []column[kindSum]{
		{"kind", func(k kindSum) any { return k.kind }},
		{"read", func(k kindSum) any { return inBytes(k.Read) }},
		{"reads", func(k kindSum) any { return k.Reads }},
		{"written", func(k kindSum) any { return inBytes(k.Written) }},
		{"writes", func(k kindSum) any { return k.Writes }},
	},
}

// largest returns the files with the most traffic, without pipes and sockets, because these have no names.
func largest(files []trace.File) []trace.File {
	all := slices.DeleteFunc(slices.Clone(files), func(f trace.File) bool {
		return f.Kind == trace.Pipe || f.Kind == trace.Socket || f.Read+f.Written == 0
	})
	slices.SortStableFunc(all, func(a, b trace.File) int { return cmp.Compare(b.Read+b.Written, a.Read+a.Written) })
	return all[:min(len(all), maxFiles)]
}

var fileTable = listing[trace.File]{
	id: func(f trace.File) string { return f.Path },
	columns: []column[trace.File]{
		{"file", func(f trace.File) any { return f.Path }},
		{"opens", func(f trace.File) any { return unless(f.Opens) }},
		{"read", func(f trace.File) any { return inBytes(f.Read) }},
		{"written", func(f trace.File) any { return inBytes(f.Written) }},
	},
}

// remarks returns further sentences about a trace: unusual behaviour, unaccounted calls, and the cost of tracing.
func remarks(t *trace.Trace) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, f := range t.Files {
		if f.Kind == trace.Regular && f.Written == 0 && f.Size > 0 && f.Read >= rereadFactor*f.Size &&
			f.Read-f.Size > minReread {
			say("reads %s %.1f × over", f.Path, float64(f.Read)/float64(f.Size))
		}
	}
	if t.OK() {
		if p, err := profile.Of([]profile.Sample{profile.Traced(t, t.ID)}); err == nil {
			for _, f := range p.Findings() {
				say("%s", f.Sentence)
			}
		}
	}
	if missed := missedCalls(t); missed != "" {
		say("unaccounted: %s", missed)
	}
	say("tracing: %d stops (%s), %s of cpu in the tracer", t.Overhead.Stops, t.Overhead.By, span(t.Overhead.CPU))
	return all
}

// missedCalls lists the calls whose traffic is unknown.
func missedCalls(t *trace.Trace) string {
	var said []string
	for _, m := range t.Missed {
		line := fmt.Sprintf("%d calls of %s", m.Calls, m.Call)
		if m.Bytes > 0 {
			line += fmt.Sprintf(" (of %s)", inBytes(m.Bytes))
		}
		said = append(said, line)
	}
	return strings.Join(said, ", ")
}

// readTraces creates a profile from the traces in a file. It omits traces of failed commands, which are not typical of
// such tasks.
func (v profileVerbs) readTraces(r io.Reader, file string) (*profile.Profile, error) {
	made, failed := profile.New(), 0
	err := trace.Read(r, file, func(t *trace.Trace) error {
		if !t.OK() {
			failed++
			return nil
		}
		return made.Add(profile.Traced(t, file))
	})
	switch {
	case err != nil:
		return nil, err
	case len(made.Runs()) == 0:
		return nil, corral.ErrorAt(corral.Invalid, file, "it has no trace of a successful command")
	case failed > 0:
		v.say("%s: %d trace(s) of failed commands are ignored", file, failed)
	}
	return made, nil
}
