package workflow

import (
	"fmt"
	"maps"
	"slices"
)

// Sizes collects the sizes of files for a format that specifies a size at each use of a file. The sizes of one file may
// differ: some formats specify the number of bytes that the task read, and some generators draw each size separately.
// The size specified by a task that writes the file is used or, if there is none, the largest size. The zero value is
// ready to use.
type Sizes struct {
	files   map[string]fileSize
	unequal int // number of files with different sizes at different uses
	first   Warning
}

// A fileSize is the size of one file according to the uses recorded so far.
type fileSize struct {
	bytes   int64
	written bool // specified by a task that writes the file
	unequal bool // another use specified a different size
}

// Use records the size specified at one use of a file.
func (s *Sizes) Use(file string, bytes int64, writes bool, at Place) {
	f, known := s.files[file]
	if known && f.bytes != bytes && !f.unequal {
		f.unequal = true
		if s.unequal++; s.unequal == 1 {
			s.first = Warning{at, fmt.Sprintf("file %q has %d bytes here, and %d elsewhere; "+
				"the writer's size is used, or else the largest", Short(file), bytes, f.bytes)}
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

// Give passes the sizes to a builder, and adds one warning if files have different sizes at different uses. It returns
// the errors of Builder.File, with the place end.
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
