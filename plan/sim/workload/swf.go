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

// The Standard Workload Format, version 2.2, is the format of the logs of parallel machines in the Parallel Workloads
// Archive (Chapin, Cirne, Feitelson, Jones, Leutenegger, Schwiegelshohn, Smith and Talby: Benchmarks and standards for
// the evaluation of parallel job schedulers, JSSPP 1999, §2.3).
//
// A trace consists of lines of text: comments, which begin with a semicolon and contain the header as "; Label: value",
// and records of 18 numbers, one for each field of a job; -1 stands for an unknown value. Times are in seconds since
// the beginning of the trace. The text may be gzip-compressed.
//
// This file reads traces and converts them to jobs; it simulates nothing. Its invariant: any input is read within
// limits on its bytes and jobs, and each error contains a position, name:line.

// The fields of a record, in the order of a line.
const (
	fieldNumber              = iota // number of the job, from 1
	fieldSubmit                     // s
	fieldWait                       // s, from submission to start
	fieldRuntime                    // s
	fieldProcessors                 // number of allocated processors
	fieldCPUTime                    // s per processor, mean
	fieldMemory                     // KB per processor, mean
	fieldRequestedProcessors        //
	fieldRequestedTime              // s
	fieldRequestedMemory            // KB per processor
	fieldStatus                     // 1: completed, 0: failed, 5: cancelled; other values are for parts of jobs
	fieldUser                       //
	fieldGroup                      //
	fieldExecutable                 //
	fieldQueue                      //
	fieldPartition                  //
	fieldPreceding                  // number of the job that had to end before its submission
	fieldThinkTime                  // s from that job's end to the submission
	fields                          // number of fields
)

// A record holds the fields of one job, which the constants above index. Unknown values are -1.
type record [fields]float64

const (
	maxBytes  = 1 << 30   // maximum size of a text: five times that of the longest text in the archive
	maxJobs   = 5_000_000 // maximum number of jobs in a text
	maxLine   = 64 << 10
	maxNumber = 1e9 // maximum value of a field: in seconds it is 31 years
)

// A Header holds the values of a trace's header comments by label, for example MaxProcs. If a label occurs repeatedly,
// its first value counts.
type Header map[string]string

// Machine returns the machine's number of processors, if the header contains it: the value of MaxProcs or, if that is
// missing, of MaxNodes.
func (h Header) Machine() (processors int, ok bool) {
	for _, label := range []string{"MaxProcs", "MaxNodes"} {
		first, _, _ := strings.Cut(h[label], " ")
		if n, err := strconv.Atoi(first); err == nil && n > 0 {
			return n, true
		}
	}
	return 0, false
}

// read reads a trace and calls the function each for every record, in the order of the lines.
func read(ctx context.Context, r io.Reader, name string, each func(record)) (Header, error) {
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
		r, err := parse(words)
		if jobs++; err == nil && jobs > maxJobs {
			err = fmt.Errorf("the trace has more than %d jobs", maxJobs)
		}
		if err != nil {
			return nil, invalid(ctx, name, line, err)
		}
		each(r)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, invalid(ctx, name, line+1, fmt.Errorf("the line is longer than %s", input.Size(maxLine)))
	} else if err != nil {
		return nil, invalid(ctx, name, line+1, err)
	}
	return header, nil
}

// invalid adds the position to an error, or returns the cause if ctx is cancelled.
func invalid(ctx context.Context, name string, line int, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if line > 0 {
		name += ":" + strconv.Itoa(line)
	}
	return corral.ErrorAt(corral.Invalid, name, "%w", err)
}

// plain returns the text, decompressed if necessary.
func plain(r io.Reader) (io.Reader, error) {
	text := bufio.NewReader(r)
	if begin, err := text.Peek(2); err != nil || !bytes.Equal(begin, []byte{0x1f, 0x8b}) {
		return text, nil
	}
	return gzip.NewReader(text)
}

// note records the label and value of a comment.
func (h Header) note(comment string) {
	label, value, ok := strings.Cut(strings.TrimLeft(comment, "; \t"), ":")
	if _, known := h[label]; ok && !known && len(h) < 1000 && !strings.Contains(label, " ") {
		h[label] = strings.TrimSpace(value)
	}
}

// parse parses one line.
func parse(words []string) (r record, err error) {
	if len(words) != fields {
		return r, fmt.Errorf("the line must have %[2]d fields, not %[1]d", len(words), fields)
	}
	for i, word := range words {
		x, err := strconv.ParseFloat(word, 64)
		switch {
		case err != nil || math.IsNaN(x):
			return r, fmt.Errorf("field %d, %.40q, is not a number", i+1, word)
		case math.Abs(x) > maxNumber && i != fieldMemory && i != fieldRequestedMemory:
			return r, fmt.Errorf("field %d is %s, which is beyond %d", i+1, word, int(maxNumber))
		case x < 0 && x != -1 && names[i] != "":
			return r, fmt.Errorf("the %s, field %d, is %s: the only negative value allowed is -1, for unknown",
				names[i], i+1, word)
		}
		r[i] = x
	}
	return r, nil
}

// names holds the names, used in errors, of the fields that define jobs; the only negative value allowed in them is -1.
// In some logs other fields have other negative values.
var names = [fields]string{
	fieldSubmit: "submit time", fieldRuntime: "run time", fieldProcessors: "number of processors",
	fieldRequestedProcessors: "number of requested processors", fieldRequestedTime: "requested time",
}
