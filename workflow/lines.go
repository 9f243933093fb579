package workflow

import (
	"bytes"
	"errors"
	"io"
)

var errTooLarge = errors.New("the file is too large")

// A lineReader passes a text on and can say on which line an offset is, and what stands between two
// offsets, as long as it is asked for ascending offsets: it keeps the text from the last offset whose
// position was asked for to what was read.
type lineReader struct {
	r      io.Reader
	limit  int64 // it fails with errTooLarge beyond
	read   int64
	kept   []byte // kept[drop:] is the text from offset to read
	drop   int
	offset int64
	passed int   // newlines before offset
	begin  int64 // where the line of offset begins
}

func (l *lineReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.drop > len(l.kept)/2 { // not more often, so that a byte is moved about once
		l.kept = l.kept[:copy(l.kept, l.kept[l.drop:])]
		l.drop = 0
	}
	l.kept = append(l.kept, p[:n]...)
	l.read += int64(n)
	if l.read > l.limit {
		return 0, errTooLarge
	}
	return n, err
}

// position returns line and column of offset, both from 1, and forgets what is before it.
func (l *lineReader) position(offset int64) (line, column int) {
	if offset > l.offset {
		text := l.between(l.offset, offset)
		l.passed += bytes.Count(text, []byte{'\n'})
		if last := bytes.LastIndexByte(text, '\n'); last >= 0 {
			l.begin = l.offset + int64(last) + 1
		}
		l.offset = offset
		l.drop += len(text)
	}
	return l.passed + 1, int(max(0, offset-l.begin)) + 1
}

// between returns the text from one offset to another, neither before the last position. It is valid
// until the next Read.
func (l *lineReader) between(from, to int64) []byte {
	text := l.kept[l.drop:]
	return text[max(0, from-l.offset):min(int64(len(text)), to-l.offset)]
}
