package workflow

import (
	"fmt"
	"maps"
	"slices"
)

// Sizes are the sizes of files in a format that gives them with each use of a file, where uses may disagree: some
// formats mean what the task read, and some generators draw each by itself. A file has the size that a task which
// writes it gives, or else the largest. The zero value is ready for use.
type Sizes struct {
	files   map[string]fileSize
	unequal int // files whose uses differ
	first   Warning
}

// A fileSize is the size of one file, as far as its uses were seen.
type fileSize struct {
	bytes   int64
	written bool // a task that writes the file gave it
	unequal bool // another use gave another one
}

// Use notes what one use of a file says.
func (s *Sizes) Use(file string, bytes int64, writes bool, at Place) {
	f, known := s.files[file]
	if known && f.bytes != bytes && !f.unequal {
		f.unequal = true
		if s.unequal++; s.unequal == 1 {
			s.first = Warning{at, fmt.Sprintf("file %q has %d bytes here, and %d elsewhere; "+
				"what its writer says counts, or else the most", Short(file), bytes, f.bytes)}
		}
	}
	switch {
	case writes && !f.written, !known:
		f.bytes = bytes
	case writes == f.written:
		f.bytes = max(f.bytes, bytes)
	}
	f.written = f.written || writes
	if s.files == nil {
		s.files = make(map[string]fileSize)
	}
	s.files[file] = f
}

// Give gives the sizes to a builder, with one warning if uses differ. Errors are those of Builder.File, at end.
func (s *Sizes) Give(b *Builder, end Place) error {
	if s.unequal > 0 {
		b.WarnFor(s.first, s.unequal-1)
	}
	for _, file := range slices.Sorted(maps.Keys(s.files)) {
		if err := b.File(file, s.files[file].bytes, end); err != nil {
			return err
		}
	}
	return nil
}
