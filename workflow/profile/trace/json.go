package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/corral-pilot/corral"
)

// A file of traces has one JSON object per line, so that files can be joined by concatenation and many tasks can append
// to one file.

// maxLine is the maximum length of a line in bytes.
const maxLine = 64 << 20

// maxTraces is the maximum number of traces in one file.
const maxTraces = 1_000_000

// sign is the beginning of every line that contains a trace.
const sign = `{"corral_trace":`

// Sniff reports whether a text that begins with begin may contain traces in the form of Line.
func Sniff(begin []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(begin, " \t\r\n"), []byte(sign)) }

// Line returns the trace as one line of JSON, including the newline.
func (t *Trace) Line() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(t)
	return b.Bytes(), err
}

// Read reads traces, one per line, validates them, and calls the function each for every trace. name is the name of the
// file in errors. Errors are of kind Invalid, with the place name:line; they are returned for a line that is not a
// trace of this version, for unknown fields and for numbers that no measurement can produce. Read also returns any
// error from each. An incomplete last line is also an error.
func Read(r io.Reader, name string, each func(*Trace) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 0
	at := func(err error) error { return corral.ErrorAt(corral.Invalid, fmt.Sprintf("%s:%d", name, n), "%w", err) }
	for found := 0; lines.Scan(); {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if found++; found > maxTraces {
			return at(fmt.Errorf("the file has more than %d traces", maxTraces))
		}
		t, err := parse(lines.Bytes())
		if err != nil {
			return at(err)
		}
		if err := each(t); err != nil {
			return at(err)
		}
	}
	if err := lines.Err(); err != nil {
		n++
		return at(err)
	}
	return nil
}

// parse parses one line.
func parse(line []byte) (*Trace, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	t := new(Trace)
	if err := dec.Decode(t); err != nil {
		return nil, fmt.Errorf("the line is not a trace: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("there is text after the end of the trace")
	}
	return t, t.validate()
}

// validate returns an error for a trace that no execution can produce.
func (t *Trace) validate() error {
	switch {
	case t.Version != Version:
		return fmt.Errorf("the version of the trace must be %d, not %d", Version, t.Version)
	case t.Mode != Processes && t.Mode != IO:
		return fmt.Errorf("mode %.40q must be %s or %s", t.Mode, Processes, IO)
	case t.ID == "" || t.Transformation == "":
		return errors.New("the trace has no id or no transformation")
	case t.Runtime() < 0:
		return errors.New("the trace ends before it starts")
	case len(t.Processes) == 0:
		return errors.New("the trace has no process")
	case t.MoreProcs < 0 || t.MoreCalls < 0:
		return errors.New("a count is negative")
	}
	for i := range t.Processes {
		if err := t.Processes[i].validate(); err != nil {
			return fmt.Errorf("process %d: %w", t.Processes[i].ID, err)
		}
	}
	return t.validateBytes()
}

func (p *Process) validate() error {
	switch {
	case p.Start < 0 || p.End < p.Start || p.End > maxSpan:
		return errors.New("its times are not in order")
	case p.Execs < 0 || p.Threads < 1:
		return errors.New("a count is impossible")
	case p.UserCPU < 0 || p.SysCPU < 0 || max(p.UserCPU, p.SysCPU) > maxSpan:
		return errors.New("its cpu time is impossible")
	case !counts(p.PeakBytes, p.VirtualBytes, p.ReadBytes, p.WrittenBytes):
		return errors.New("a number of bytes is impossible")
	}
	return nil
}

func (t *Trace) validateBytes() error {
	for k, s := range t.Kinds {
		if !strings.Contains(kindNames, " "+string(k)+" ") || !s.valid() {
			return fmt.Errorf("kind %.40q: unknown, or an impossible number", k)
		}
	}
	for i := range t.Files {
		f := &t.Files[i]
		if !f.valid() || !counts(f.Opens, f.Mapped) || f.Size < -1 || f.Size > maxCount {
			return fmt.Errorf("file %.200q: a number is impossible", f.Path)
		}
	}
	for _, u := range t.Missed {
		if !counts(u.Calls, u.Bytes) {
			return fmt.Errorf("call %.40q: a number is impossible", u.Call)
		}
	}
	return nil
}

// maxSpan is the maximum duration in nanoseconds: a thousand days. maxCount is the maximum number of bytes, and of
// calls, in a single count.
const (
	maxSpan  = 1e9 * 86400 * 1000
	maxCount = 1 << 53
)

// kindNames contains the kinds, each between two blanks.
var kindNames = func() string {
	names := " "
	for _, k := range AllKinds {
		names += string(k) + " "
	}
	return names
}()

func (s Sum) valid() bool { return counts(s.Read, s.Written, s.Reads, s.Writes) }

// counts reports whether all values are possible numbers of bytes or calls.
func counts(all ...int64) bool {
	for _, n := range all {
		if n < 0 || n > maxCount {
			return false
		}
	}
	return true
}
