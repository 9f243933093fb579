package ptrace

import (
	"maps"
	"slices"

	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// A ledger records the bytes moved for each target of a descriptor. It keeps sums by kind for all targets, and lists
// files up to a limit.
type ledger struct {
	files  map[string]*entry // :: target of a descriptor → what was recorded for it
	kinds  map[trace.Kind]*trace.Sum
	missed map[string]*trace.Unaccounted
	std    [3]stream
	more   int64 // calls recorded for files that are not listed
}

// An entry is a file of the ledger. An unlisted entry, beyond the limit, contains only a kind and sums.
type entry struct {
	trace.File
	listed bool
}

// A stream is one of the three standard streams of a command.
type stream struct {
	target string // the file it refers to; empty: the stream is treated like any other descriptor
	entry
}

// maxFiles limits the number of files that a trace lists.
const maxFiles = 20_000

func newLedger() *ledger {
	return &ledger{
		files: map[string]*entry{}, kinds: map[trace.Kind]*trace.Sum{}, missed: map[string]*trace.Unaccounted{},
	}
}

// standard records the target of a standard stream. /dev/null is not recorded: every program may open it for its own
// purposes.
func (l *ledger) standard(fd int, name, target string) {
	if target != "/dev/null" {
		l.std[fd].target = target
		l.std[fd].entry = entry{trace.File{Path: name, Kind: trace.Std, Size: -1, Target: target}, true}
	}
}

// stream returns the standard stream that a descriptor refers to, or nil if there is none. If several streams have the
// same target, as on a terminal, it returns the stream with the descriptor's number or, failing that, the first.
func (l *ledger) stream(fd int, target []byte) *entry {
	if fd < len(l.std) && l.std[fd].target == string(target) {
		return &l.std[fd].entry
	}
	for i := range l.std {
		if l.std[i].target == string(target) {
			return &l.std[i].entry
		}
	}
	return nil
}

// add creates the entry for a target whose kind and size are known.
func (l *ledger) add(target string, kind trace.Kind, size int64) *entry {
	e := &entry{trace.File{Path: target, Kind: kind, Size: size}, true}
	if len(l.files) >= maxFiles {
		return &entry{trace.File{Kind: e.Kind}, false}
	}
	l.files[target] = e
	return e
}

// moved records a call that moved n bytes: in was read from, out was written to; either may be nil.
func (l *ledger) moved(in, out *entry, n int64) {
	if in != nil {
		l.book(in, trace.Sum{Read: n, Reads: 1})
	}
	if out != nil {
		l.book(out, trace.Sum{Written: n, Writes: 1})
	}
}

func (l *ledger) book(e *entry, s trace.Sum) {
	if !e.listed {
		l.more++
	}
	e.Add(s)
	sum := l.kinds[e.Kind]
	if sum == nil {
		sum = new(trace.Sum)
		l.kinds[e.Kind] = sum
	}
	sum.Add(s)
}

// miss counts a call whose transfer is unknown; bytes is an upper bound.
func (l *ledger) miss(call string, bytes int64) {
	m := l.missed[call]
	if m == nil {
		m = &trace.Unaccounted{Call: call}
		l.missed[call] = m
	}
	m.Calls++
	m.Bytes += bytes
}

// write copies the records to a trace: first the standard streams, if they were used, then files by name.
func (l *ledger) write(t *trace.Trace) {
	t.Kinds = make(map[trace.Kind]trace.Sum, len(l.kinds))
	for k, s := range l.kinds {
		t.Kinds[k] = *s
	}
	for i := range l.std {
		if e := &l.std[i].entry; e.Sum != (trace.Sum{}) {
			t.Files = append(t.Files, e.File)
		}
	}
	for _, target := range slices.Sorted(maps.Keys(l.files)) {
		t.Files = append(t.Files, l.files[target].File)
	}
	for _, call := range slices.Sorted(maps.Keys(l.missed)) {
		t.Missed = append(t.Missed, *l.missed[call])
	}
	t.MoreCalls = l.more
}
