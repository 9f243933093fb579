package wfformat

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/corral-pilot/corral/internal/kit/input"
)

// maxBlanks is the maximum number of consecutive blanks in bytes. It is limited because the decoder buffers blanks
// until the next value begins.
const maxBlanks = 1 << 20

var (
	errLongValue = errors.New("a value is")
	errNotUTF8   = errors.New("the text is not UTF-8; convert the file")
	errBlanks    = errors.New("more than " + input.Size(maxBlanks) + " of whitespace")
)

// A lineReader passes a text on to the decoder. It can return the line of an offset, and the text between two offsets,
// as long as offsets are queried in ascending order: it buffers the text from the last queried offset to the end of the
// text read so far. This is at most one value and the decoder's read-ahead.
//
// It also limits the size of a value. The decoder itself has no limit: it buffers a value until the value is complete,
// and whitespace until a value begins.
type lineReader struct {
	r      io.Reader
	most   int64 // maximum bytes of a value, beyond which Read fails with errLongValue
	read   int64
	blanks int    // at the end of the text read
	kept   []byte // kept[drop:] is the text from offset to the end of the text read
	drop   int
	offset int64
	passed int    // number of newlines before offset
	begin  int64  // offset of the beginning of the current line
	cut    []byte // an incomplete character at the end of the text read
	bad    int64  // offset of invalid UTF-8
}

// Read fills p as far as the text allows. After each Read the decoder scans all the blanks before a value again, and it
// doubles its buffer when the buffer is full. As long as every Read fills the buffer, the scans take time proportional
// to the number of blanks; with short Reads the time would be quadratic.
func (l *lineReader) Read(p []byte) (int, error) {
	if int64(len(l.kept)-l.drop) > l.most {
		return 0, fmt.Errorf("%w %w", errLongValue, &input.TooLongError{Limit: l.most})
	}
	n, err := io.ReadFull(l.r, p)
	if errors.Is(err, io.ErrUnexpectedEOF) && n > 0 {
		err = nil // the next Read returns the error again
	}
	if l.drop > len(l.kept)/2 { // not more often, so that each byte is moved about once
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

// fewBlanks reports whether the number of consecutive blanks is within the limit if the text continues with these
// bytes. If the number of bytes is within the limit, only the blanks at their beginning and end matter.
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

// inUTF8 reports whether the text continues as UTF-8 with these bytes; last means that no more bytes follow. It records
// the offset of an invalid character. The decoder would silently replace such characters.
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

// position returns the line and column of an offset, both from 1, and drops the text before the offset.
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

// between returns the text between two offsets, which must not be before the last offset passed to position. The result
// is valid until the next Read.
func (l *lineReader) between(from, to int64) []byte {
	text := l.kept[l.drop:]
	return text[max(0, from-l.offset):min(int64(len(text)), to-l.offset)]
}
