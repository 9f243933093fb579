package jobdir

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/corral-pilot/corral/gridsite"
	"github.com/corral-pilot/corral/internal/kit/input"
)

// sparseHeader is a GNU tar header of a file that consists of one hole.
func sparseHeader(name string, size int64) []byte {
	h := make([]byte, 512)
	octal := func(at int, n int64) { copy(h[at:], fmt.Sprintf("%011o", n)) }
	copy(h, name)
	copy(h[100:], "0000600")
	copy(h[257:], "ustar  \x00")
	h[156] = 'S'
	octal(124, 0)    // bytes in the archive
	octal(386, size) // the only segment: empty, at the end
	octal(398, 0)
	octal(483, size)
	copy(h[148:], "        ")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	return h
}

// A site's answer may represent more bytes than it contains.
func TestSparseAnswerIsLimited(t *testing.T) {
	t.Parallel()
	for size, whole := range map[int64]bool{gridsite.MaxReadMany: true, gridsite.MaxReadMany + 1: false, 8<<30 - 1: false} {
		answer := append([]byte("tar\n"), sparseHeader("tag/report.json", size)...)
		files, err := parseMany(append(append(answer, make([]byte, 1024)...), "end\n"...))
		var tooLong *input.TooLongError
		switch {
		case whole && (err != nil || !bytes.Equal(files["tag"]["report.json"], make([]byte, size))):
			t.Errorf("%d bytes of holes: %v", size, err)
		case !whole && !errors.As(err, &tooLong):
			t.Errorf("%d bytes of holes: %v, want that they are too many", size, err)
		}
	}
}
