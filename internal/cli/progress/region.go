package progress

import (
	"fmt"
	"io"
	"strings"
)

// A Region represents the last lines of a terminal, which change in place. No other output may be written to the
// terminal between the region's first Draw and its Keep or Clear.
type Region struct {
	w     io.Writer
	drawn []string
}

// NewRegion returns an empty region on w.
func NewRegion(w io.Writer) *Region { return &Region{w: w} }

// Draw replaces the lines drawn before with the given lines, which must fit the terminal's width.
func (r *Region) Draw(lines ...string) {
	if strings.Join(lines, "\n") == strings.Join(r.drawn, "\n") && len(lines) == len(r.drawn) {
		return
	}
	var b strings.Builder // everything is in one write, so that the region is never half drawn
	r.rewind(&b)
	for _, l := range lines {
		b.WriteString(l + "\x1b[K\n")
	}
	if len(lines) < len(r.drawn) {
		b.WriteString("\x1b[J")
	}
	r.drawn = append(r.drawn[:0], lines...)
	io.WriteString(r.w, b.String())
}

// Clear removes the lines, so that the next output replaces them.
func (r *Region) Clear() {
	var b strings.Builder
	r.rewind(&b)
	if len(r.drawn) > 0 {
		b.WriteString("\x1b[J")
	}
	r.drawn = nil
	io.WriteString(r.w, b.String())
}

// Keep leaves the lines on the terminal; the next Draw starts below them.
func (r *Region) Keep() { r.drawn = nil }

// rewind moves the cursor to the region's first line.
func (r *Region) rewind(b *strings.Builder) {
	if len(r.drawn) > 0 {
		fmt.Fprintf(b, "\x1b[%dA\r", len(r.drawn))
	}
}
