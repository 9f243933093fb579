package workload

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/corral-pilot/corral"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// Read reads traces of jobs in the Standard Workload Format, version 2.2, in which the Parallel Workloads
// Archive keeps the logs of parallel machines (Chapin, Cirne, Feitelson, Jones, Leutenegger, Schwiegelshohn, Smith and
// Talby: Benchmarks and standards for the evaluation of parallel job schedulers, JSSPP 1999, §2.3).
//
// A trace is lines of text: comments, which begin with a semicolon and hold the header's "; Label: value", and records
// of 18 numbers, each of which says of one job what the field's constant names; -1 stands for what is not known.
// Times are in seconds since the beginning of the trace. The text may be gzip-compressed.
//
// It reads what a trace says, and makes jobs of a queue from it; nothing is played here. Its one invariant: whatever
// comes is read within a limit of bytes and of jobs, and everything that is wrong has a place, name:line.

// Fields of a Record, in the order of a line.
const (
	Number              = iota // of the job, from 1
	Submit                     // s
	Wait                       // s, from its submission to its start
	Runtime                    // s
	Processors                 // that it was given
	CPUTime                    // s of a processor, in the mean
	Memory                     // KB of a processor, in the mean
	RequestedProcessors        //
	RequestedTime              // s
	RequestedMemory            // KB of a processor
	Status                     // 1: completed, 0: failed, 5: cancelled, and others of parts of jobs
	User                       //
	Group                      //
	Executable                 //
	Queue                      //
	Partition                  //
	Preceding                  // number of the job before which it was not submitted
	ThinkTime                  // s from that one's end to its submission
	fields                     // how many there are
)

// A Record is what a trace says of one job: see the constants. Unknown is -1.
type Record [fields]float64

const (
	maxBytes  = 1 << 30   // of a text: the longest of the archive has a fifth of it
	maxJobs   = 5_000_000 // that a text may have
	maxLine   = 64 << 10
	maxNumber = 1e9 // that a field may have: of seconds that is 31 years
)

// A Header is what the comments say of the trace, by label. The first of a label counts.
type Header map[string]string

// Machine returns how many processors the machine had, as far as the header says so: MaxProcs, or else MaxNodes.
func (h Header) Machine() (processors int, ok bool) {
	for _, label := range []string{"MaxProcs", "MaxNodes"} {
		first, _, _ := strings.Cut(h[label], " ")
		if n, err := strconv.Atoi(first); err == nil && n > 0 {
			return n, true
		}
	}
	return 0, false
}

// Read reads a trace of at most a GiB and calls each with every record, in the order of the lines; name is what errors
// call it. It stops at the first error, also one of each. Errors are of kind Invalid with a place, except after the end
// of ctx, which ends the reading: then it is ctx's cause.
func Read(ctx context.Context, r io.Reader, name string, each func(Record) error) (Header, error) {
	header, line := Header{}, 0
	text, err := plain(input.Limit(ctx, r, maxBytes))
	if err != nil {
		return nil, invalid(ctx, name, 0, fmt.Errorf("decompressing: %w", err))
	}
	lines := bufio.NewScanner(input.Limit(ctx, text, maxBytes))
	lines.Buffer(nil, maxLine)
	jobs := 0
	for lines.Scan() {
		line++
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0:
			continue
		case words[0][0] == ';':
			header.note(lines.Text())
			continue
		}
		record, err := parse(words)
		if jobs++; err == nil && jobs > maxJobs {
			err = fmt.Errorf("there are more than %d jobs", maxJobs)
		}
		if err == nil {
			err = each(record)
		}
		if err != nil {
			return nil, invalid(ctx, name, line, err)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, invalid(ctx, name, line+1, fmt.Errorf("the line is longer than %s", input.Size(maxLine)))
	} else if err != nil {
		return nil, invalid(ctx, name, line+1, err)
	}
	return header, nil
}

// invalid says where something is wrong.
func invalid(ctx context.Context, name string, line int, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if line > 0 {
		name += ":" + strconv.Itoa(line)
	}
	return corral.ErrorAt(corral.Invalid, name, "%w", err)
}

// plain is a text that may be compressed.
func plain(r io.Reader) (io.Reader, error) {
	text := bufio.NewReader(r)
	if begin, err := text.Peek(2); err != nil || !bytes.Equal(begin, []byte{0x1f, 0x8b}) {
		return text, nil
	}
	return gzip.NewReader(text)
}

// note notes what a comment says.
func (h Header) note(comment string) {
	label, value, ok := strings.Cut(strings.TrimLeft(comment, "; \t"), ":")
	if _, known := h[label]; ok && !known && len(h) < 1000 && !strings.Contains(label, " ") {
		h[label] = strings.TrimSpace(value)
	}
}

// parse reads one line.
func parse(words []string) (r Record, err error) {
	if len(words) != fields {
		return r, fmt.Errorf("the line has %d fields, want %d", len(words), fields)
	}
	for i, word := range words {
		x, err := strconv.ParseFloat(word, 64)
		switch {
		case err != nil || math.IsNaN(x):
			return r, fmt.Errorf("field %d, %.40q, is not a number", i+1, word)
		case math.Abs(x) > maxNumber && i != Memory && i != RequestedMemory:
			return r, fmt.Errorf("field %d is %s, which is beyond %d", i+1, word, int(maxNumber))
		case x < 0 && x != -1 && names[i] != "":
			return r, fmt.Errorf("the %s, field %d, is %s: only -1, for what is not known, may be negative", names[i],
				i+1, word)
		}
		r[i] = x
	}
	return r, nil
}

// names are those of the fields of which jobs are made, for errors. Some logs have other fields negative.
var names = [fields]string{Submit: "submit time", Runtime: "run time", Processors: "number of processors",
	RequestedProcessors: "number of requested processors", RequestedTime: "requested time"}
