package progress

import (
	"fmt"
	"io"
	"strings"
)

// A Region is the last lines of a terminal, which change in place. Nothing else may be written to the terminal
// between its first Draw and its Keep or Clear.
type Region struct {
	w     io.Writer
	drawn []string
}

// NewRegion returns an empty region on w.
func NewRegion(w io.Writer) *Region { return &Region{w: w} }

// Draw puts lines in place of those drawn before. They must fit the terminal's width.
func (r *Region) Draw(lines ...string) {
	if strings.Join(lines, "\n") == strings.Join(r.drawn, "\n") && len(lines) == len(r.drawn) {
		return
	}
	var b strings.Builder // one write, so that the region is never half drawn
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

// Clear removes the lines; the next output takes their place.
func (r *Region) Clear() {
	var b strings.Builder
	r.rewind(&b)
	if len(r.drawn) > 0 {
		b.WriteString("\x1b[J")
	}
	r.drawn = nil
	io.WriteString(r.w, b.String())
}

// Keep leaves the lines; the next Draw starts below them.
func (r *Region) Keep() { r.drawn = nil }

// rewind moves to the region's first line.
func (r *Region) rewind(b *strings.Builder) {
	if len(r.drawn) > 0 {
		fmt.Fprintf(b, "\x1b[%dA\r", len(r.drawn))
	}
}
