package workflow

import (
	"errors"
	"io"
)

var errTooLarge = errors.New("the file is too large")

// A lineReader passes a text on and can say on which line an offset is, as long as it is asked for
// ascending offsets: it keeps only the newlines between the last offset asked for and what was read.
type lineReader struct {
	r        io.Reader
	limit    int64 // it fails with errTooLarge beyond
	read     int64
	newlines []int64 // offsets, not yet passed
	passed   int
	begin    int64 // offset where the line of the last position begins
}

func (l *lineReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			l.newlines = append(l.newlines, l.read+int64(i))
		}
	}
	l.read += int64(n)
	if l.read > l.limit {
		return 0, errTooLarge
	}
	return n, err
}

// position returns line and column of offset, both from 1.
func (l *lineReader) position(offset int64) (line, column int) {
	k := 0
	for k < len(l.newlines) && l.newlines[k] < offset {
		l.begin = l.newlines[k] + 1
		k++
	}
	l.passed += k
	l.newlines = append(l.newlines[:0], l.newlines[k:]...)
	return l.passed + 1, int(max(0, offset-l.begin)) + 1
}
