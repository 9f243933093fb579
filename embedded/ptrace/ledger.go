package ptrace

import (
	"maps"
	"slices"

	"github.com/corral-pilot/corral/workflow/profile/trace"
)

// A ledger books bytes to what descriptors lead to. Sums by kind are kept of everything; files are listed as long as
// there is room.
type ledger struct {
	files  map[string]*entry // :: where a descriptor leads → what was booked to it
	kinds  map[trace.Kind]*trace.Sum
	missed map[string]*trace.Unaccounted
	std    [3]stream
	more   int64 // calls that were booked to no file
}

// An entry is a file of the ledger. One for which there was no room has a kind and nothing else.
type entry struct {
	trace.File
	listed bool
}

// A stream is one of the three that a command is started with.
type stream struct {
	target string // where it leads; empty: it is none, and counts as any other descriptor
	entry
}

// maxFiles is how many files a trace lists.
const maxFiles = 20_000

func newLedger() *ledger {
	return &ledger{
		files: map[string]*entry{}, kinds: map[trace.Kind]*trace.Sum{}, missed: map[string]*trace.Unaccounted{},
	}
}

// standard notes where a standard stream leads. /dev/null is none: whoever opens it means nothing by it.
func (l *ledger) standard(fd int, name, target string) {
	if target != "/dev/null" {
		l.std[fd].target = target
		l.std[fd].entry = entry{trace.File{Path: name, Kind: trace.Std, Size: -1, Target: target}, true}
	}
}

// stream returns the standard stream that a descriptor is, nil if it is none. If several lead to one place, as on a
// terminal, that of the same number counts, and for another number the first.
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

// add makes the entry of a place, whose kind and size have been looked up.
func (l *ledger) add(target string, kind trace.Kind, size int64) *entry {
	e := &entry{trace.File{Path: target, Kind: kind, Size: size}, true}
	if len(l.files) >= maxFiles {
		return &entry{trace.File{Kind: e.Kind}, false}
	}
	l.files[target] = e
	return e
}

// moved books a call that moved bytes: in is read from, out is written to, either may be nil.
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

// miss counts a call that moves bytes of which nothing is known but how many they are at most.
func (l *ledger) miss(call string, bytes int64) {
	m := l.missed[call]
	if m == nil {
		m = &trace.Unaccounted{Call: call}
		l.missed[call] = m
	}
	m.Calls++
	m.Bytes += bytes
}

// write puts what was booked into a trace: first the standard streams, if they were used, then files by name.
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
