package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A Place is a position in an event log. Its zero value is the beginning.
type Place struct {
	Inode  uint64 `json:"inode"`
	Offset int64  `json:"offset"`
}

// A File follows an event log in a file that is being written, and may be rotated (to Path.old, Path.1, …) or
// truncated. Store Place after each event: earlier events are not read again, unless the file was truncated, in which
// case all of it is read.
type File struct {
	Path  string
	Place Place
}

// New returns the events written since Place, and advances Place with each. The sequence ends at the last complete
// record; see [Reader.Next] for the errors, and [NewReader] for reference. A file that does not exist yet has no
// events.
func (l *File) New(reference time.Time) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		goOn := true
		if rotated := l.rotated(); rotated != "" {
			goOn = l.read(rotated, reference, yield)
		}
		if goOn {
			l.read(l.Path, reference, yield)
		}
	}
}

// rotated returns the current name of the file at Place if that is no longer Path.
func (l *File) rotated() string {
	if l.Place.Inode == 0 || l.Place.Inode == inode(l.Path) {
		return ""
	}
	names, _ := filepath.Glob(l.Path + ".*") // a bad pattern has no matches, so reading begins at the new file
	for _, name := range names {
		if inode(name) == l.Place.Inode {
			return name
		}
	}
	return ""
}

func inode(name string) uint64 {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

// read yields the new events in the file of that name; it reports whether to continue.
func (l *File) read(name string, reference time.Time, yield func(Event, error) bool) bool {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		return yield(Event{}, fmt.Errorf("opening event log: %w", err))
	}
	defer f.Close()
	if err := l.seek(f); err != nil {
		return yield(Event{}, fmt.Errorf("reading event log %s: %w", name, err))
	}
	start, reader := l.Place.Offset, NewReader(f, reference)
	for {
		event, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return true
		}
		l.Place.Offset = start + reader.Offset()
		var bad *BadRecord
		if errors.As(err, &bad) {
			bad.Offset += start
		}
		if !yield(event, err) {
			return false
		}
		if err != nil && bad == nil {
			return false
		}
	}
}

// seek moves to Place, or to the beginning of the file if Place belongs to another file or was truncated. A truncated
// file may have grown again, but then no line ends at Place.
func (l *File) seek(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	here := info.Sys().(*syscall.Stat_t).Ino
	if here != l.Place.Inode || info.Size() < l.Place.Offset || !endsLine(f, l.Place.Offset) {
		l.Place = Place{Inode: here}
	}
	_, err = f.Seek(l.Place.Offset, io.SeekStart)
	return err
}

// endsLine reports whether a line ends just before offset. If none does, the file was truncated and has grown again.
func endsLine(f *os.File, offset int64) bool {
	if offset == 0 {
		return true
	}
	last := make([]byte, 1)
	_, err := f.ReadAt(last, offset-1)
	return err == nil && bytes.Equal(last, []byte("\n"))
}
