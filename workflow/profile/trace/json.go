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

// A file of traces has a JSON object a line, so that files are joined by writing one behind the other, and many tasks
// may append to one file.

// maxLine is the longest line, in bytes, that is read.
const maxLine = 64 << 20

// maxTraces is how many traces are read from one file.
const maxTraces = 1_000_000

// sign is how every line begins that Write has written.
const sign = `{"corral_trace":`

// Sniff reports whether a text that begins so may be traces as Write writes them.
func Sniff(begin []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(begin, " \t\r\n"), []byte(sign)) }

// Line is the trace as one line of JSON, with its end.
func (t *Trace) Line() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(t)
	return b.Bytes(), err
}

// Read reads traces, one a line, and hands each over, which is valid; name is what errors call the file. They are of
// kind Invalid, with the place name:line, for a line that is not a trace of this version, for unknown fields and for
// numbers that no measurement gives; or what each returned. A last line that was cut off is refused like any other.
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

// parse reads one line.
func parse(line []byte) (*Trace, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	t := new(Trace)
	if err := dec.Decode(t); err != nil {
		return nil, fmt.Errorf("it is not a trace: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("there is more behind the trace")
	}
	return t, t.validate()
}

// validate refuses what no execution leaves.
func (t *Trace) validate() error {
	switch {
	case t.Version != Version:
		return fmt.Errorf("version %d of the form of traces is not known, want %d", t.Version, Version)
	case t.Mode != Processes && t.Mode != IO:
		return fmt.Errorf("mode %.40q is neither %s nor %s", t.Mode, Processes, IO)
	case t.ID == "" || t.Transformation == "":
		return errors.New("it has no id or no transformation")
	case t.Runtime() < 0:
		return errors.New("it ended before it started")
	case len(t.Processes) == 0:
		return errors.New("it has no process")
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

// maxSpan is how long anything takes at most, in nanoseconds: a thousand days. maxCount bounds
// bytes and calls of one thing.
const (
	maxSpan  = 1e9 * 86400 * 1000
	maxCount = 1 << 53
)

// kindNames has the kinds, with a blank on both sides of each.
var kindNames = func() string {
	names := " "
	for _, k := range AllKinds {
		names += string(k) + " "
	}
	return names
}()

func (s Sum) valid() bool { return counts(s.Read, s.Written, s.Reads, s.Writes) }

// counts reports whether all are numbers of bytes or calls.
func counts(all ...int64) bool {
	for _, n := range all {
		if n < 0 || n > maxCount {
			return false
		}
	}
	return true
}
