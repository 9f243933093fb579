package wfformat

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/corral-pilot/corral/internal/kit/input"
)

// maxBlanks is how many blanks may follow each other, in bytes: the decoder keeps them all until a value comes.
const maxBlanks = 1 << 20

var (
	errLongValue = errors.New("a value is")
	errNotUTF8   = errors.New("the text is not UTF-8; convert the file")
	errBlanks    = errors.New("more than " + input.Size(maxBlanks) + " of whitespace")
)

// A lineReader passes a text on to the decoder. It can say on which line an offset is, and what stands between two
// offsets, as long as it is asked for ascending offsets: it keeps the text from the last offset whose position was
// asked for up to what was read. That is at most one value and what the decoder has read ahead.
//
// It is also where the size of a value is bounded. The decoder itself has no bound: it buffers a value until it is
// complete, and whitespace until a value comes.
type lineReader struct {
	r      io.Reader
	most   int64 // bytes of a value; it fails with errLongValue beyond
	read   int64
	blanks int    // at the end of what was read
	kept   []byte // kept[drop:] is the text from offset to read
	drop   int
	offset int64
	passed int    // newlines before offset
	begin  int64  // where the line of offset begins
	cut    []byte // the beginning of a character at the end of what was read
	bad    int64  // the offset of what is not UTF-8
}

// Read fills p as far as the text goes. After each Read the decoder looks through all the blanks before a value
// again, and it doubles its buffer when the buffer is full. As long as every Read fills the buffer, this takes time
// in proportion to the number of blanks; short Reads would make it the square.
func (l *lineReader) Read(p []byte) (int, error) {
	if int64(len(l.kept)-l.drop) > l.most {
		return 0, fmt.Errorf("%w %w", errLongValue, &input.TooLongError{Limit: l.most})
	}
	n, err := io.ReadFull(l.r, p)
	if errors.Is(err, io.ErrUnexpectedEOF) && n > 0 {
		err = nil // the next Read meets whatever ended the text
	}
	if l.drop > len(l.kept)/2 { // not more often, so that a byte is moved about once
		l.kept = l.kept[:copy(l.kept, l.kept[l.drop:])]
		l.drop = 0
	}
	l.kept = append(l.kept, p[:n]...)
	l.read += int64(n)
	if !l.inUTF8(p[:n], err != nil) {
		return 0, errNotUTF8
	}
	if !l.fewBlanks(p[:n]) {
		return 0, errBlanks
	}
	return n, err
}

// fewBlanks reports whether there are not too many blanks in a row, as the text goes on with these bytes. Where there
// are not as many bytes, only the blanks at their ends can be among too many.
func (l *lineReader) fewBlanks(b []byte) bool {
	const blank = " \n\r\t"
	if len(b) <= maxBlanks {
		rest := bytes.TrimLeft(b, blank)
		l.blanks += len(b) - len(rest)
		if l.blanks <= maxBlanks && len(rest) > 0 {
			l.blanks = len(rest) - len(bytes.TrimRight(rest, blank))
		}
		return l.blanks <= maxBlanks
	}
	for _, c := range b {
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			l.blanks = 0
		} else if l.blanks++; l.blanks > maxBlanks {
			return false
		}
	}
	return true
}

// inUTF8 reports whether the text goes on in UTF-8 with these bytes; last, that no more follow. The decoder would put
// another character in the place of what is not. It notes where that is.
func (l *lineReader) inUTF8(b []byte, last bool) bool {
	at := l.read - int64(len(b)) - int64(len(l.cut))
	if len(l.cut) > 0 {
		b = append(l.cut, b...)
	}
	l.cut = nil
	if utf8.Valid(b) {
		return true
	}
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			if !last && !utf8.FullRune(b) {
				l.cut = bytes.Clone(b)
				return true
			}
			l.bad = at
			return false
		}
		b, at = b[n:], at+int64(n)
	}
	return true
}

// position returns line and column of offset, both from 1, and forgets the text before it.
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
